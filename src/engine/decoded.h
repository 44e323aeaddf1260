/*
 * A format whose fields are decoded. To the rest of the engine it is a format
 * like any other, made of the format that finds the bytes and the decoders that
 * interpret them. Neither knows about the other, and a data set without
 * decoders pays nothing.
 */
#ifndef PEN_ENGINE_DECODED_H
#define PEN_ENGINE_DECODED_H

#include "base/pairs.h"
#include "format/format.h"

/* Settings that concern decoders. */
struct pen_decode_set {
	struct pen_pairs decode; /* FIELD=NAME[:OPTIONS] */
	struct pen_pairs image;	 /* [FIELD.]SETTING */
	struct pen_pairs format; /* options of the format */
};

/*
 * Takes over *f and wraps it in a format that decodes: as requested, or else as
 * the format itself declares, with those of its options that the decoder knows.
 * *f is unchanged if there is nothing to decode, and on an error.
 */
int pen__decoded_open(struct pen_format **f, const struct pen_decode_set *,
		      struct pen_err *);
/* Checks the names and options of decoders. */
int pen__decoded_try(const struct pen_pairs *decode, struct pen_err *err);
/* The format that finds the bytes; f itself if nothing is decoded. */
struct pen_format *pen__decoded_under(struct pen_format *f);

#endif
