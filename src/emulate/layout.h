/*
 * The data set of a workload in the layout of DLIO: names, shapes and sizes of
 * its files, computed from the settings. It is identical to that of DLIO, so
 * that either program reads what the other wrote.
 */
#ifndef PEN_EMULATE_LAYOUT_H
#define PEN_EMULATE_LAYOUT_H

#include "emulate/config.h"

#define PEN_LAYOUT_PATH 4096 /* any path of a data set fits */

enum pen_split { PEN_TRAIN, PEN_VALID };

struct pen_data_layout {
	const struct pen_config *c;
	enum pen_dtype dtype;
	uint64_t nfiles;   /* train, then valid */
	uint64_t nsamples; /* per file; 1 for formats of single samples */
	uint32_t ndim;	   /* axes of a record */
	int64_t dims[PEN_MAX_DIMS];
	int32_t *sides;	 /* 2 per file if sizes vary; else NULL */
	char root[3584]; /* storage root joined with data folder */
};

int pen__layout_init(struct pen_data_layout *, const struct pen_config *,
		     struct pen_err *err);
void pen__layout_fini(struct pen_data_layout *);
/* The path of file i (root/train/0/img_03_of_64.npz). */
void pen__layout_path(const struct pen_data_layout *, uint64_t i, char *buf,
		      size_t cap);
/* The path of its index, for tfrecord
 * (root/index/train/img_03_of_64.tfrecord.idx); else empty. */
void pen__layout_index_path(const struct pen_data_layout *, uint64_t i,
			    char *buf, size_t cap);
/* The directory of a split: root/train. */
void pen__layout_dir(const struct pen_data_layout *, enum pen_split, char *buf,
		     size_t cap);
/* Number of subfolders of a split (0: none), and the path of subfolder k. */
uint64_t pen__layout_nsubfolders(const struct pen_data_layout *,
				 enum pen_split);
void pen__layout_subfolder(const struct pen_data_layout *, enum pen_split,
			   uint64_t k, char *buf, size_t cap);
static inline enum pen_split pen__layout_split(const struct pen_data_layout *l,
					       uint64_t i)
{
	return i < l->c->dataset.num_files_train ? PEN_TRAIN : PEN_VALID;
}
/* The shape of a record of file i; returns the number of axes. */
uint32_t pen__layout_shape(const struct pen_data_layout *, uint64_t i,
			   int64_t *shape);
/* Payload bytes of all samples of file i. */
uint64_t pen__layout_bytes(const struct pen_data_layout *, uint64_t i);
/* Payload bytes of a split. */
uint64_t pen__layout_total(const struct pen_data_layout *, enum pen_split);

/* Parses a NumPy type: uint8, u1, <f4, float, half, ...; key is the setting,
 * for messages. */
int pen__numpy_dtype(const char *name, const char *key, enum pen_dtype *out,
		     struct pen_err *err);

#endif
