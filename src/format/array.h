/*
 * An n-dimensional array in a file, seen as samples: the axis that counts them,
 * the bytes of one sample, and how these become a C-order, little-endian row.
 * Shared by npy, npz and raw.
 */
#ifndef PEN_FORMAT_ARRAY_H
#define PEN_FORMAT_ARRAY_H

#include "codec/array_copy.h"
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

/* Many views; their shapes are stored in one pool, since most have few axes. */
struct pen_views {
	struct pen_view *v;
	size_t n, cap;
	int64_t *dims;
	size_t ndims, cap_dims;
};

/* Number of samples; the error explains a mismatch. */
int pen__array_samples(const struct pen_array *, enum pen_samples,
		       uint64_t *out, const char *where, struct pen_err *);
/* Appends a view; 0 or PEN_ENOMEM. */
int pen__views_add(struct pen_views *, const struct pen_array *,
		   enum pen_samples);
/* If the view added last equals the one at i, drops it and returns true. */
bool pen__views_fold(struct pen_views *, size_t i);
void pen__views_fini(struct pen_views *);

/*
 * Widens a field to include the view: the first view with samples defines it;
 * later ones may differ in lengths (which become -1) but not in rank or type.
 * Views without samples only count if there are no others. Returns 0, or 1 with
 * the reason in why if they do not match.
 */
enum pen_seen { PEN_SEEN_NONE, PEN_SEEN_EMPTY, PEN_SEEN_SAMPLES };
int pen__field_widen(struct pen_field *, enum pen_seen *,
		     const struct pen_view *, const int64_t *shape, char *why,
		     size_t cap);
/* The unit of sample k: its bytes, or the entire array if it is strided. */
static inline struct pen_unit pen__view_unit(const struct pen_view *v,
					     uint32_t object, uint64_t k)
{
	return (struct pen_unit){
		.offset = v->at + (v->strided ? 0 : k * v->row),
		.len = v->strided ? v->nbytes : v->row,
		.id = (uint64_t)object << 8,
		.object = object,
		.flags = v->plain     ? PEN_UNIT_PLAIN
			 : v->strided ? PEN_UNIT_SHARED
				      : 0,
	};
}
/* Copies the sample from unit i, made by pen__view_unit(), to its row. */
int pen__view_emit(const struct pen_format *, const struct pen_row *,
		   uint32_t i, const struct pen_view *, const int64_t *shape,
		   struct pen_err *);
/* Name of an object with that blob, for messages. */
void pen__blob_name(const struct pen_index *, uint64_t blob, char *buf,
		    size_t cap);
/* An error that names the object and, unless NULL, its member. */
int pen__object_fail(const struct pen_format *, int kind, uint32_t object,
		     const char *member, const char *what, struct pen_err *);
/* "3x4x5", or "scalar". */
void pen__shape_text(const int64_t *shape, uint32_t ndim, char *buf,
		     size_t cap);

#endif
