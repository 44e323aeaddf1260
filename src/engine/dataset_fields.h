/*
 * The fields of a data set: those of its format, and the label that labels=
 * adds. The format does not know about the label: the engine looks it up by
 * sample number and writes it when a batch is finished.
 */
#ifndef PEN_ENGINE_DATASET_FIELDS_H
#define PEN_ENGINE_DATASET_FIELDS_H

#include <stdbool.h>

#include "penstock.h"

struct pen_dataset;
struct pen_choice;
struct pen_loader;
struct pen_spec;

struct pen_label {
	bool on;     /* delivered, after the fields of the format */
	bool unread; /* fields= names it, so the format was not asked for it */
	struct pen_field field;
	int from; /* field of the format that defines its codes, or -1 */
	/* labels=folder, else NULL: the class of every directory, and the
	 * directory of every class; names omit the common prefix */
	uint32_t *class_of, *dir_of;
	uint32_t nclasses;
	size_t common;
};

/* Requires a bound format and store. */
int pen__label_open(struct pen_dataset *, struct pen_err *err);
void pen__label_close(struct pen_dataset *);
/* The fields to request from the format: fields= without the label. *out is the
 * caller's to free, and NULL if fields= names nothing else. */
int pen__fields_of_format(const struct pen_spec *, char **out,
			  struct pen_err *err);
/* Which fields are excluded by fields=; hide has PEN_MAX_FIELDS elements. */
int pen__fields_hide(const struct pen_dataset *, bool *hide,
		     struct pen_err *err);

/* Fills c->labels with the label of every chosen sample. */
int pen__label_choose(struct pen_choice *, const struct pen_dataset *,
		      struct pen_err *err);

#endif
