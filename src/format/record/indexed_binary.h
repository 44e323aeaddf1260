/* Shared by the two names of indexed binary. */
#ifndef PEN_FORMAT_RECORD_INDEXED_BINARY_H
#define PEN_FORMAT_RECORD_INDEXED_BINARY_H

#include "codec/array_copy.h"
#include "format/format.h"

struct pen_indexed {
	/* options */
	char *dtype, *shape;
	/* from open() on */
	struct pen_array a; /* without shape=: one axis of any length */
	/* from bind() on */
	struct pen_indexed_part *part; /* by blob */
};

/* The members of pen_format_ops that both formats share. */
#define PEN_INDEXED_OPS                                                        \
	.opts = pen__indexed_opts, .priv_size = sizeof(struct pen_indexed),    \
	.open = pen__indexed_open, .close = pen__indexed_close,                \
	.index = pen__indexed_index, .bind = pen__indexed_bind,                \
	.shape = pen__indexed_shape, .locate = pen__indexed_locate,            \
	.emit = pen__indexed_emit, .describe = pen__indexed_describe,          \
	.write = pen__indexed_write

extern const struct pen_opt pen__indexed_opts[];
int pen__indexed_open(struct pen_format *, struct pen_err *);
void pen__indexed_close(struct pen_format *);
int pen__indexed_index(const struct pen_format *, struct pen_peek *,
		       struct pen_found *, struct pen_err *);
int pen__indexed_bind(struct pen_format *, const struct pen_index *,
		      struct pen_err *);
void pen__indexed_shape(const struct pen_format *, uint32_t object, uint64_t k,
			uint32_t field, int64_t *shape);
void pen__indexed_locate(const struct pen_format *, uint32_t object, uint64_t k,
			 struct pen_unit *);
int pen__indexed_emit(const struct pen_format *, const struct pen_row *,
		      struct pen_err *);
void pen__indexed_describe(const struct pen_format *, struct pen_describe *);
int pen__indexed_write(const struct pen_format *, const struct pen_table *,
		       struct pen_out *, struct pen_err *);

#endif
