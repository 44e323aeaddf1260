/*
 * How long samples are, for batches by length: out of a table (lengths=), or
 * asked of the format, whose index knows shapes without reading.
 */
#ifndef PEN_ENGINE_PLAN_LENGTHS_H
#define PEN_ENGINE_PLAN_LENGTHS_H

#include "engine/dataset.h"

struct pen_choice; /* loader.h */

struct pen_lengths {
	const struct pen_format *f;
	const struct pen_choice *c;
	uint32_t field;	   /* whose shape counts ... */
	uint32_t axes;	   /* ... along these axes, a bit each */
	uint64_t constant; /* nothing varies: all have this length */
	/* A number for each element; NULL: shape() is asked. */
	const uint32_t *table;
	uint32_t *own; /* the table, when it was made here */
	/* Of all elements: */
	uint64_t shortest, longest;
	uint64_t longest_of; /* an element that is so long */
	double mean;
};

/* Which field says how long a sample is: of those that are delivered, first
 * one that varies, else one that has an axis. flat: only fields of one axis.
 * PEN_ENOTFOUND, without a message: there is none. */
int pen__lengths_field(struct pen_lengths *, const struct pen_dataset *,
		       const uint32_t *varying, bool flat, struct pen_err *);
/* An element's: not the sample's number, but its place in the choice. */
uint64_t pen__length_of(const struct pen_lengths *, uint64_t element);
/* Fills in what is known of all of them. */
void pen__lengths_measure(struct pen_lengths *);
/* Makes a table of what shape() says. 0 or PEN_ENOMEM. */
int pen__lengths_tabulate(struct pen_lengths *, struct pen_err *);
void pen__lengths_fini(struct pen_lengths *);

#endif
