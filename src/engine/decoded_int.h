/* Shared by the files that implement decoded.h. */
#ifndef PEN_ENGINE_DECODED_INT_H
#define PEN_ENGINE_DECODED_INT_H

#include "decode/decode.h"
#include "engine/decoded.h"

#define PEN_CODED_KINDS 8  /* decoders per field */
#define PEN_CODED_BAD 0xff /* in place of a decoder: there is no head */

/* A field that is decoded. */
struct pen_coded {
	char name[64];
	/* With several, the first bytes of a value select one. */
	struct pen_decoder *decoder[PEN_CODED_KINDS];
	uint32_t nkinds;
	bool by_head; /* the shape comes from the first bytes, not the length */
	/* set by bind() */
	uint32_t field;
	struct pen_head all;  /* dtype and shape of rows */
	struct pen_head some; /* stands in for a missing head */
	uint32_t used;	      /* decoders in use, one bit each */
	size_t most;	      /* bytes of the largest row */
	size_t room; /* where its bytes go in the scratch, unless lent */
};

/* The heads of a field in one object: one per sample, or one for all. */
struct pen_heads {
	const uint8_t *p;
	uint64_t n;
	uint32_t stride;
};

/* The index as the format below sees it: without the heads. */
struct pen_under_index {
	struct pen_index pub; /* first */
	const struct pen_index *of;
};

struct pen_decoded {
	struct pen_format_ops ops; /* those of the format, some replaced */
	struct pen_format *under;
	struct pen_under_index ix;
	struct pen_coded *coded;
	uint32_t ncoded;
	struct pen_heads *heads; /* blob * ncoded + coded */
};

/* decoded_open.c: fills d->coded, as described at pen__decoded_open(). */
int pen__coded_open(struct pen_decoded *, const struct pen_format_ops *,
		    const struct pen_decode_set *, struct pen_err *);
void pen__coded_close(struct pen_decoded *);

/* decoded_index.c: index() with heads, and heads from the index. */
int pen__decoded_index(const struct pen_format *, struct pen_peek *,
		       struct pen_found *, struct pen_err *);
int pen__decoded_see(const struct pen_format *, const char *field, uint64_t k,
		     struct pen_peek *, struct pen_found *, struct pen_err *);
void pen__under_index(struct pen_decoded *, const struct pen_index *);
/* Fills d->heads, and checks them. */
int pen__heads_find(struct pen_decoded *, struct pen_err *);
void pen__head_get(const struct pen_heads *, uint64_t k, struct pen_head *out);
/* Finds the decoder for these bytes, and their head. */
int pen__coded_look(const struct pen_coded *, struct pen_peek *,
		    struct pen_head *out, struct pen_err *);

/* decoded_bind.c */
int pen__decoded_bind(struct pen_format *, const struct pen_index *,
		      struct pen_err *);
/* The head of sample k; its decoder is PEN_CODED_BAD when it has none. */
void pen__coded_head(const struct pen_format *, const struct pen_coded *,
		     uint32_t object, uint64_t k, struct pen_head *out);
void pen__coded_shape(const struct pen_coded *, const struct pen_head *,
		      int64_t *shape);
/* Size of the encoded value in bytes. */
uint64_t pen__coded_len(const struct pen_decoded *, const struct pen_coded *,
			uint32_t object, uint64_t k);

#endif
