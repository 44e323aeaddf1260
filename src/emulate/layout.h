/*
 * The data set of a workload, as DLIO lays it out: names, shapes and sizes of
 * its files, from the settings alone. Reproduced bit by bit, so that either
 * program reads what the other wrote.
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
	uint64_t nsamples; /* in a file; 1 where the format holds no more */
	uint32_t ndim;	   /* of a record */
	int64_t dims[PEN_MAX_DIMS];
	int32_t *sides;	 /* 2 per file when sizes vary; else NULL */
	char root[3584]; /* storage root and data folder joined */
};

int pen__layout_init(struct pen_data_layout *, const struct pen_config *,
		     struct pen_err *err);
void pen__layout_fini(struct pen_data_layout *);
/* File i of all: where it is (root/train/0/img_03_of_64.npz). */
void pen__layout_path(const struct pen_data_layout *, uint64_t i, char *buf,
		      size_t cap);
/* Its index where DLIO keeps one elsewhere: tfrecord's
 * (root/index/train/img_03_of_64.tfrecord.idx). Empty: it has none. */
void pen__layout_index_path(const struct pen_data_layout *, uint64_t i,
			    char *buf, size_t cap);
/* The directory of a split: root/train. */
void pen__layout_dir(const struct pen_data_layout *, enum pen_split, char *buf,
		     size_t cap);
/* Subfolder k of a split, below as many as there are (0: none). */
uint64_t pen__layout_nsubfolders(const struct pen_data_layout *,
				 enum pen_split);
void pen__layout_subfolder(const struct pen_data_layout *, enum pen_split,
			   uint64_t k, char *buf, size_t cap);
static inline enum pen_split pen__layout_split(const struct pen_data_layout *l,
					       uint64_t i)
{
	return i < l->c->dataset.num_files_train ? PEN_TRAIN : PEN_VALID;
}
/* Shape of one record of file i; ndim of it. */
uint32_t pen__layout_shape(const struct pen_data_layout *, uint64_t i,
			   int64_t *shape);
/* Payload bytes of file i, all its samples. */
uint64_t pen__layout_bytes(const struct pen_data_layout *, uint64_t i);
/* Of a whole split. */
uint64_t pen__layout_total(const struct pen_data_layout *, enum pen_split);

/* A type as NumPy names it: uint8, u1, <f4, float, half, ...; key is the
 * setting it stands in, for messages. */
int pen__numpy_dtype(const char *name, const char *key, enum pen_dtype *out,
		     struct pen_err *err);

#endif
