/*
 * A format whose fields are decoded: to the rest of the engine it is a format
 * like any other, made of the one that finds the bytes and of the decoders that
 * know what they mean. Neither of those knows of the other, and a data set
 * without decoders has none of this in its way.
 */
#ifndef PEN_ENGINE_DECODED_H
#define PEN_ENGINE_DECODED_H

#include "base/pairs.h"
#include "format/format.h"

/*
 * Takes *f over, and makes it one that decodes: what `decode` says, a pair
 * FIELD and NAME[:OPTIONS] each, and else what the format says itself, with
 * those of its options (`given`) that the decoder knows. *f stays what it is
 * when there is nothing to decode, or on an error.
 */
int pen__decoded_open(struct pen_format **f, const struct pen_pairs *decode,
		      const struct pen_pairs *given, struct pen_err *err);
/* Are these decoders, with options that they have? */
int pen__decoded_try(const struct pen_pairs *decode, struct pen_err *err);
/* The format that finds the bytes; f itself when nothing is decoded. */
struct pen_format *pen__decoded_under(struct pen_format *f);

#endif
