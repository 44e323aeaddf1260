/*
 * An n-dimensional array in a file, seen as samples: which axis they lie
 * along, which bytes one of them is made of, and how those become a C-order,
 * little-endian row. Shared by npy, npz and raw.
 */
#ifndef PEN_FORMAT_ARRAY_H
#define PEN_FORMAT_ARRAY_H

#include "format/format.h"

/* Option `samples`. AUTO is resolved before an array is seen as samples. */
enum pen_samples {
	PEN_SAMPLES_AUTO,
	PEN_SAMPLES_FILE,  /* the whole array is one sample */
	PEN_SAMPLES_FIRST, /* axis 0 counts samples */
	PEN_SAMPLES_LAST,  /* the last axis counts samples, as DLIO writes */
	PEN_NSAMPLES
};
extern const char *const pen__samples_choices[];

/* What a header declares. */
struct pen_array {
	enum pen_dtype dtype;
	bool swap;    /* big-endian items of more than one byte */
	bool fortran; /* first axis fastest */
	uint32_t ndim;
	int64_t shape[PEN_MAX_DIMS];
	uint64_t at;	 /* where the data begins in its file or member */
	uint64_t nbytes; /* of data */
};

/* The same, seen as samples; shape is that of one sample. */
struct pen_view {
	uint64_t at, nbytes;
	uint64_t n;    /* samples */
	uint64_t row;  /* bytes of one sample */
	uint64_t step; /* from a sample's first item to the next sample's */
	size_t dims;   /* where its shape begins in the pool */
	uint8_t ndim;
	uint8_t dtype;
	bool swap, fortran;
	bool strided; /* items of one sample lie between those of others */
	bool plain;   /* bytes [k * row, + row) are the row, as they are */
};

/* Many views; their shapes lie in one pool, since most have few axes. */
struct pen_views {
	struct pen_view *v;
	size_t n, cap;
	int64_t *dims;
	size_t ndims, cap_dims;
};

/* How many samples; errors explain what does not fit. */
int pen__array_samples(const struct pen_array *, enum pen_samples,
		       uint64_t *out, const char *where, struct pen_err *);
/* Appends a view; 0 or PEN_ENOMEM. */
int pen__views_add(struct pen_views *, const struct pen_array *,
		   enum pen_samples);
/* Whether the last one added equals the one at i; if so it is dropped. */
bool pen__views_fold(struct pen_views *, size_t i);
void pen__views_fini(struct pen_views *);

/*
 * The row of the sample whose first item is at src: v->row bytes in C order,
 * this machine's byte order. The array's bytes reach at least as far as the
 * sample needs: `pen__view_span` of them.
 */
void pen__view_copy(const struct pen_view *, const int64_t *shape,
		    const uint8_t *src, void *dst);
uint64_t pen__view_span(const struct pen_view *);

/*
 * A 2-d copy with free strides (in bytes): dst[i][j] = src[i][j] for ni x nj
 * items; `swap` is the size of what is byte-swapped inside an item, or 0.
 */
struct pen_tile {
	size_t ni, nj;
	size_t dst_i; /* dst's j runs over adjacent items */
	size_t src_i, src_j;
};
void pen__tile_copy(const struct pen_tile *, size_t item, size_t swap,
		    uint8_t *dst, const uint8_t *src);
/* Bytes that swap as one: complex numbers are two of them. */
size_t pen__swap_size(enum pen_dtype);
/* n bytes of numbers into the other byte order, in place. */
void pen__swap(enum pen_dtype, uint8_t *p, size_t n);

/*
 * Widens a field by the view: the first one with samples defines it, later
 * ones may differ in lengths (which become -1) but not in rank or type. Views
 * without samples count only as long as there is nothing else. 0, or 1 when
 * they do not fit: then why has the reason.
 */
enum pen_seen { PEN_SEEN_NONE, PEN_SEEN_EMPTY, PEN_SEEN_SAMPLES };
int pen__field_widen(struct pen_field *, enum pen_seen *,
		     const struct pen_view *, const int64_t *shape, char *why,
		     size_t cap);
/* The name of some object with that blob, for messages. */
void pen__blob_name(const struct pen_index *, uint64_t blob, char *buf,
		    size_t cap);
/* PEN_EDATA, naming object and, unless NULL, its member. */
int pen__object_fail(const struct pen_format *, uint32_t object,
		     const char *member, const char *what, struct pen_err *);
/* "3x4x5", or "scalar". */
void pen__shape_text(const int64_t *shape, uint32_t ndim, char *buf,
		     size_t cap);

#endif
