/*
 * A decoder interprets the bytes of one value: a JPEG, an npy, a number as
 * text. Locating these bytes in a file or record is the task of a format; the
 * two are independent, so every decoder works with every format whose fields
 * contain bytes.
 *
 * The shape of a value must be known before it is decoded, because batches are
 * laid out by it: from its first bytes when the data is indexed (head), or from
 * its length alone (size). All heads together define the type of the field:
 * grey images among colour ones become colour (join).
 *
 * Only open() allocates, and an open decoder is const: one serves all threads.
 * The state of a thread is in its scratch.
 */
#ifndef PEN_DECODE_DECODE_H
#define PEN_DECODE_DECODE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/opt.h"
#include "base/peek.h"
#include "codec/scratch.h"

#define PEN_HEAD_DIMS 8 /* most axes of a decoded value */

/* Type and shape of a decoded value. */
struct pen_head {
	uint8_t dtype, ndim;
	uint8_t kind;	 /* private to the decoder */
	uint8_t decoder; /* set by the engine: which decoder of the field */
	/* Set by size() for the first axis: its length follows from the number
	 * of bytes; it is an upper bound, since only decode() knows the length
	 * (values with one axis). */
	bool follows, upto;
	int64_t shape[PEN_HEAD_DIMS];
};

/* A value being decoded into its row. */
struct pen_encoded {
	struct pen_span bytes;
	struct pen_head head; /* of this value, as indexed */
	/* Of all values: type, and shape with -1 where they differ. The row has
	 * this type, and the lengths of the head instead of -1. */
	const struct pen_head *as;
	void *dst;
	size_t len;   /* bytes of the row; all must be written */
	size_t *used; /* upto: bytes used; initially len */
	struct pen_scratch *scratch;
	uint64_t key; /* of its sample: see struct pen_row */
};

struct pen_decoder {
	const struct pen_decoder_ops *ops;
	void *priv; /* ops->priv_size bytes, options parsed */
	/* Prefix of options as users write them: "format." */
	char prefix[112];
};

struct pen_decoder_ops {
	const char *name;
	const char *help;	  /* one line */
	const char *const *media; /* "image/png"; NULL-terminated, or NULL */
	/* First bytes of every value, to recognise it; NULL: not recognisable.
	 */
	const char *magic;
	/* The first option may be specified without its name, as in json:KEY.
	 */
	const struct pen_opt *opts;
	/* Settings shared by a group of decoders, named GROUP.SETTING, and
	 * where they go in priv; NULL: none. */
	const char *group;
	const struct pen_opt *group_opts;
	size_t group_off;
	size_t priv_size;
	/* Options are parsed into d->priv. May be NULL. */
	int (*open)(struct pen_decoder *, struct pen_err *);
	/*
	 * Type and shape of a value, by its first bytes or by its length: one
	 * of the two functions is set. Errors need not name the value: pk->name
	 * or NULL.
	 */
	int (*head)(const struct pen_decoder *, struct pen_peek *,
		    struct pen_head *out, struct pen_err *);
	void (*size)(const struct pen_decoder *, uint64_t nbytes,
		     struct pen_head *out);
	/*
	 * Widens `all`, initially a copy of the first head, to include this
	 * one, so that both can be converted to it. NULL, or the reason why
	 * not. Without the function, types and numbers of axes must be equal,
	 * and lengths may differ. Decoders can share a field only if they have
	 * the same join function.
	 */
	const char *(*join)(const struct pen_decoder *, struct pen_head *all,
			    const struct pen_head *one);
	/* Sets the final axes of rows after joining. May be NULL. */
	void (*settle)(const struct pen_decoder *, struct pen_head *all);
	/* Errors need no name; the caller adds it. */
	int (*decode)(const struct pen_decoder *, const struct pen_encoded *,
		      struct pen_err *);
	/* For inspect: "RGB". May be NULL. */
	const char *(*looks)(const struct pen_head *all);
};

const struct pen_decoder_ops *pen__decoder_at(unsigned i);
/* By name or by media type. */
const struct pen_decoder_ops *pen__decoder_find(const char *name);
/* The settings of a group of decoders; NULL if the build has none of them. */
const struct pen_opt *pen__decoder_group(const char *name);
/* Whether the bytes start like a value of this decoder. */
bool pen__decoder_begins(const struct pen_decoder_ops *, const void *p,
			 size_t n);

/* The error of a value whose size differs from its row. */
int pen__decoder_misfit(struct pen_err *);
/* prefix: precedes the names of options in messages. Keys with the name of the
 * group and a dot are settings of the group. */
int pen__decoder_open(struct pen_decoder **out, const struct pen_decoder_ops *,
		      const struct pen_opts_kv *kv, size_t nkv,
		      const char *prefix, struct pen_err *);
void pen__decoder_close(struct pen_decoder *);
const char *pen__decoder_join(const struct pen_decoder *, struct pen_head *all,
			      const struct pen_head *one);

#endif
