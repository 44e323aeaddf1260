/*
 * A decoder says what the bytes of one value mean: a JPEG, an npy, a number
 * written as text. Where those bytes are, a file or a feature of a record, is
 * the business of a format; the two do not know of each other, so every decoder
 * works in every format whose fields hold bytes.
 *
 * Before a value is decoded its shape has to be known, since batches are laid
 * out by it: from its first bytes, when the data is indexed (head), or from its
 * length alone (size). All heads together say what every value is shown as:
 * grey images beside colour ones become colour (join).
 *
 * Nothing here but open() allocates for a value, and a decoder that was opened
 * is const: one serves all threads. What a thread keeps is in its scratch.
 */
#ifndef PEN_DECODE_DECODE_H
#define PEN_DECODE_DECODE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/opt.h"
#include "base/peek.h"
#include "codec/scratch.h"

#define PEN_HEAD_DIMS 8 /* axes of a decoded value, at most */

/* What a value becomes. */
struct pen_head {
	uint8_t dtype, ndim;
	uint8_t kind;	 /* the decoder's own note */
	uint8_t decoder; /* the engine's note: which of a field's it is for */
	/* Of size(), about the first axis: it grows with the bytes; and it says
	 * the most, since only decode() knows, of a value of this one axis. */
	bool follows, upto;
	int64_t shape[PEN_HEAD_DIMS];
};

/* A value on its way into its row. */
struct pen_encoded {
	struct pen_span bytes;
	struct pen_head head; /* of this one, as it was indexed */
	/* Of all: type, and shape with -1 where values differ. The row has this
	 * type, and the lengths of the head where there is a -1. */
	const struct pen_head *as;
	void *dst;
	size_t len;   /* bytes of the row, all to be written */
	size_t *used; /* upto: how many were; len to begin with */
	struct pen_scratch *scratch;
};

struct pen_decoder {
	const struct pen_decoder_ops *ops;
	void *priv; /* ops->priv_size bytes, options parsed */
	/* What users write before the name of an option: "format." */
	char prefix[112];
};

struct pen_decoder_ops {
	const char *name;
	const char *help;	  /* one line */
	const char *const *media; /* "image/png"; NULL-terminated, or NULL */
	/* How every value begins: tells it from those of other decoders. NULL:
	 * it cannot be told. */
	const char *magic;
	/* The first one may be given without its name, as in json:KEY. */
	const struct pen_opt *opts;
	size_t priv_size;
	/* Options are parsed into d->priv. May be NULL. */
	int (*open)(struct pen_decoder *, struct pen_err *);
	/*
	 * What a value becomes, by its first bytes or by its length: one of the
	 * two is there. Errors need not name the value: pk->name or NULL.
	 */
	int (*head)(const struct pen_decoder *, struct pen_peek *,
		    struct pen_head *out, struct pen_err *);
	void (*size)(const struct pen_decoder *, uint64_t nbytes,
		     struct pen_head *out);
	/*
	 * Widens `all`, at first a copy of the first head, to take this one, so
	 * that both can be shown as it. NULL, or why that cannot be. Without
	 * the function, types and numbers of axes have to be the same, and
	 * lengths may differ. Values of several decoders can be in one field
	 * only where these have one function.
	 */
	const char *(*join)(const struct pen_decoder *, struct pen_head *all,
			    const struct pen_head *one);
	/* All are joined: the axes that rows have in the end. May be NULL. */
	void (*settle)(const struct pen_decoder *, struct pen_head *all);
	/* Errors need no name: who called has it. */
	int (*decode)(const struct pen_decoder *, const struct pen_encoded *,
		      struct pen_err *);
	/* For inspect: "RGB". May be NULL. */
	const char *(*looks)(const struct pen_head *all);
};

const struct pen_decoder_ops *pen__decoder_at(unsigned i);
/* By name or by media type. */
const struct pen_decoder_ops *pen__decoder_find(const char *name);
/* Do these bytes begin as a value of it does? */
bool pen__decoder_begins(const struct pen_decoder_ops *, const void *p,
			 size_t n);

/* prefix: what stands before the name of an option in messages. */
int pen__decoder_open(struct pen_decoder **out, const struct pen_decoder_ops *,
		      const struct pen_opts_kv *kv, size_t nkv,
		      const char *prefix, struct pen_err *);
void pen__decoder_close(struct pen_decoder *);
const char *pen__decoder_join(const struct pen_decoder *, struct pen_head *all,
			      const struct pen_head *one);

#endif
