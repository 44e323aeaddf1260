/*
 * The lengths of samples, for batches by length: from a table (lengths=), or
 * from the format, whose index knows shapes without reading.
 */
#ifndef PEN_ENGINE_PLAN_LENGTHS_H
#define PEN_ENGINE_PLAN_LENGTHS_H

#include "engine/dataset.h"

struct pen_choice; /* loader.h */

struct pen_lengths {
	const struct pen_format *f;
	const struct pen_choice *c;
	uint32_t field;	   /* whose shape counts ... */
	uint32_t axes;	   /* ... along these axes, one bit each */
	uint64_t constant; /* nothing varies: all have this length */
	/* One number per element; NULL: shape() is called. */
	const uint32_t *table;
	uint32_t *own; /* the table, when it was made here */
	/* Of all elements: */
	uint64_t shortest, longest;
	uint64_t longest_of; /* an element of that length */
	double mean;
};

/* Finds the field that gives the length of a sample: among those delivered, the
 * first one that varies, else one with an axis. flat: only fields with one
 * axis. PEN_ENOTFOUND, without a message: there is none. */
int pen__lengths_field(struct pen_lengths *, const struct pen_dataset *,
		       const uint32_t *varying, bool flat, struct pen_err *);
/* element: its place in the choice, not the sample's number. */
uint64_t pen__length_of(const struct pen_lengths *, uint64_t element);
/* Computes the figures over all elements. */
void pen__lengths_measure(struct pen_lengths *);
/* Builds a table from shape(). 0 or PEN_ENOMEM. */
int pen__lengths_tabulate(struct pen_lengths *, struct pen_err *);
void pen__lengths_fini(struct pen_lengths *);

#endif
