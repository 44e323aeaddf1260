/*
 * The fields of a data set: those its format has, and the label that labels=
 * adds. The format knows nothing of the label: the engine has it by the number
 * of the sample, and writes it when a batch is finished.
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
	bool on;     /* it is delivered, after the fields of the format */
	bool unread; /* fields= names it, and so the format was not asked */
	struct pen_field field;
	int from; /* the field of the format that its codes are of, or -1 */
	/* labels=folder, else NULL: the class of every directory, and the
	 * directory of every class; names are without what all begin with */
	uint32_t *class_of, *dir_of;
	uint32_t nclasses;
	size_t common;
};

/* Of a data set whose format and store are bound. */
int pen__label_open(struct pen_dataset *, struct pen_err *err);
void pen__label_close(struct pen_dataset *);
/* The fields that the format is asked for: fields= without the label; *out is
 * the caller's to free, and NULL when fields= names no other. */
int pen__fields_of_format(const struct pen_spec *, char **out,
			  struct pen_err *err);
/* Which fields fields= leaves out; hide has PEN_MAX_FIELDS. */
int pen__fields_hide(const struct pen_dataset *, bool *hide,
		     struct pen_err *err);

/* The label of every chosen sample; c->labels. */
int pen__label_choose(struct pen_choice *, const struct pen_dataset *,
		      struct pen_err *err);

#endif
