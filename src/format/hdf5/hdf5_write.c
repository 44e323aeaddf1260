/*
 * The HDF5 writer, through libhdf5 with its newest file version, in DLIO's
 * layout: records_0, records_1, ... with samples along axis 0, and labels. A
 * file is built in memory and written in one piece, because libhdf5 needs to
 * seek and a pen_out does not support that. libhdf5 runs one thread at a time,
 * so values are generated before, and the file is written after its turn.
 * Complex numbers are not supported.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/lookup3.h"
#include "codec/lzf.h"
#include "format/hdf5/hdf5_fields.h"
#include "format/hdf5/hdf5_int.h"
#include "format/hdf5/hdf5_lib.h"

#define LZF 32000
#define SUPERBLOCK 44u /* bytes covered by the checksum, versions 2 and 3 */

struct writer {
	const struct pen_h5_format *p;
	const struct pen_table *t;
	struct pen_err *err;
	hid_t file;
	const void *data[PEN_MAX_FIELDS];
	void *mem[PEN_MAX_FIELDS]; /* to free, or NULL */
	void *image;		   /* the finished file */
	size_t image_size;
};

static int failed(const struct writer *w, const char *what)
{
	return pen__fail(w->err, P_IO, "hdf5", "libhdf5 cannot %s", what);
}

/*
 * LZF for libhdf5, which does not include it; only compression, as nothing is
 * read here. Returning 0 stores the chunk uncompressed. Buffers use the
 * allocator of libhdf5.
 */
static size_t lzf_pack(unsigned flags, size_t ncd, const unsigned *cd, size_t n,
		       size_t *cap, void **buf)
{
	void *out;
	size_t k;

	(void)ncd;
	(void)cd;
	if ((flags & H5Z_FLAG_REVERSE) || !n)
		return 0;
	out = H5allocate_memory(n, false);
	if (!out)
		return 0;
	k = pen__lzf_pack(*buf, n, out, n - 1);
	if (!k) {
		H5free_memory(out);
		return 0;
	}
	H5free_memory(*buf);
	*buf = out;
	*cap = n;
	return k;
}

static const H5Z_class2_t lzf_filter = {
	.version = H5Z_CLASS_T_VERS,
	.id = LZF,
	.encoder_present = 1,
	.decoder_present = 1,
	.name = "lzf",
	.filter = lzf_pack,
};

/* Parses exactly n positive numbers, such as "1x64x64". */
static bool parse_dims(const char *s, unsigned n, hsize_t *out)
{
	char *end;

	for (unsigned i = 0; i < n; i++) {
		out[i] = strtoull(s, &end, 10);
		if (end == s || !out[i] || *end != (i + 1 < n ? 'x' : '\0'))
			return false;
		s = end + 1;
	}
	return n > 0;
}

/* Chunks are clipped to the maximum length of the axis. */
static bool parse_chunk(const char *s, unsigned n, const hsize_t *most,
			hsize_t *out)
{
	if (!parse_dims(s, n, out))
		return false;
	for (unsigned i = 0; i < n; i++)
		if (out[i] > most[i])
			out[i] = most[i] ? most[i] : 1;
	return true;
}

/* Layout and filters; a compressed or growable data set without a chunk shape
 * gets chunks of one sample. */
static int set_layout(const struct writer *w, hid_t dcpl, unsigned n,
		      const hsize_t *dims, const hsize_t *most, size_t size)
{
	const struct pen_h5_format *p = w->p;
	hsize_t chunk[PEN_MAX_DIMS] = { 1 };
	unsigned lzf_says[3] = { 4, 0x0105, 0 };
	hsize_t items = 1;
	bool ok = true;

	for (unsigned i = 0; i < n; i++)
		chunk[i] = i && dims[i] ? dims[i] : 1;
	if (p->chunk && !parse_chunk(p->chunk, n, most, chunk))
		return pen__fail(
			w->err, P_BAD_VALUE, "chunk",
			"'%s' is not a shape of %u numbers, such as 1x64x64",
			p->chunk, n);
	if (!p->chunk && !p->compression && !p->maxshape)
		return 0;
	ok = H5Pset_chunk(dcpl, (int)n, chunk) >= 0;
	if (ok && p->shuffle)
		ok = H5Pset_shuffle(dcpl) >= 0;
	if (ok && p->compression == 1)
		ok = H5Pset_deflate(dcpl, (unsigned)p->level) >= 0;
	for (unsigned i = 0; i < n; i++)
		items *= chunk[i];
	/* as in h5py: revision, LZF version, bytes per chunk */
	lzf_says[2] = (unsigned)(items * size);
	if (ok && p->compression == 2)
		ok = H5Zregister(&lzf_filter) >= 0 &&
		     H5Pset_filter(dcpl, LZF, H5Z_FLAG_OPTIONAL, 3, lzf_says) >=
			     0;
	return ok ? 0 : failed(w, "set chunks or filters");
}

/* Maximum lengths of the axes; the sample axis cannot grow. */
static int set_most(const struct writer *w, unsigned n, const hsize_t *dims,
		    hsize_t *most)
{
	memcpy(most, dims, n * sizeof(*dims));
	if (!w->p->maxshape)
		return 0;
	if (!parse_dims(w->p->maxshape, n - 1, most + 1))
		return pen__fail(
			w->err, P_BAD_VALUE, "maxshape",
			"'%s' is not a shape of %u numbers, such as 64x64",
			w->p->maxshape, n - 1);
	for (unsigned i = 1; i < n; i++)
		if (most[i] < dims[i])
			return pen__fail(
				w->err, P_BAD_VALUE, "maxshape",
				"'%s' is smaller than the shape of the data",
				w->p->maxshape);
	return 0;
}

/* One data set of samples, or of a part of each. plain: without the layout
 * that was asked for. */
struct part {
	const char *name;
	enum pen_dtype dtype;
	unsigned n;
	const hsize_t *dims;
	const void *data;
	bool plain;
};

static int put(const struct writer *w, const struct part *p)
{
	hid_t type = pen__hdf5_type(p->dtype), space = -1;
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), set = -1;
	hsize_t most[PEN_MAX_DIMS + 1];
	int rc = 0;

	/* equal p->data must give equal bytes, so no timestamps */
	H5Pset_obj_track_times(dcpl, false);
	if (type < 0)
		rc = pen__fail(w->err, P_UNSUPPORTED_TYPE, p->name,
			       "%s cannot be written to HDF5",
			       pen_dtype_name(p->dtype));
	if (!rc && !p->plain)
		rc = set_most(w, p->n, p->dims, most);
	if (!rc && !p->plain)
		rc = set_layout(w, dcpl, p->n, p->dims, most,
				pen_dtype_size(p->dtype));
	if (!rc)
		space = H5Screate_simple((int)p->n, p->dims,
					 p->plain ? NULL : most);
	if (!rc)
		set = H5Dcreate2(w->file, p->name, type, space, H5P_DEFAULT,
				 dcpl, H5P_DEFAULT);
	if (!rc && (set < 0 || H5Dwrite(set, type, H5S_ALL, H5S_ALL,
					H5P_DEFAULT, p->data) < 0))
		rc = failed(w, "write a p->data set");
	if (set >= 0)
		H5Dclose(set);
	if (type >= 0)
		H5Tclose(type);
	H5Pclose(dcpl);
	if (space >= 0)
		H5Sclose(space);
	return rc;
}

/* Gathers part i of n of every sample. An axis of length 1 is dropped, as DLIO
 * does. */
static int put_part(const struct writer *w, unsigned i, unsigned n,
		    const hsize_t *dims)
{
	const struct pen_field *fd = &w->t->field[0];
	const unsigned ndim = fd->ndim + 1 - (n > 1 && dims[1] == 1);
	const uint8_t *data = w->data[0];
	hsize_t less[PEN_MAX_DIMS + 1];
	char name[32];
	size_t row, part;
	uint8_t *mem;
	int rc;

	if (!pen__shape_bytes(fd->shape, fd->ndim, fd->dtype, &row))
		return pen__fail(w->err, P_CANNOT_WRITE_THIS, "hdf5",
				 "samples of this shape cannot be written");
	snprintf(name, sizeof(name), "records_%u", i);
	if (ndim == fd->ndim) {
		less[0] = dims[0];
		memcpy(less + 1, dims + 2, (ndim - 1) * sizeof(*dims));
		dims = less;
	}
	if (n == 1)
		return put(w, &(struct part){ name, fd->dtype, ndim, dims, data,
					      false });
	part = row / n;
	mem = pen__alloc((size_t)w->t->nsamples ? (size_t)w->t->nsamples : 1,
			 part ? part : 1);
	if (!mem)
		return pen__fail_nomem(w->err, "hdf5", part);
	for (uint64_t k = 0; part && k < w->t->nsamples; k++)
		memcpy(mem + k * part, data + k * row + i * part, part);
	rc = put(w, &(struct part){ name, fd->dtype, ndim, dims, mem, false });
	pen__free(mem);
	return rc;
}

static void dims_of(const struct writer *w, uint32_t i, hsize_t *dims)
{
	const struct pen_field *fd = &w->t->field[i];

	dims[0] = w->t->nsamples;
	for (uint32_t j = 0; j < fd->ndim; j++)
		dims[j + 1] = (hsize_t)fd->shape[j];
}

static int put_field(const struct writer *w, uint32_t i)
{
	const struct pen_field *fd = &w->t->field[i];
	const unsigned n = i ? 1 : (unsigned)w->p->num_dset;
	hsize_t dims[PEN_MAX_DIMS + 1];
	int rc = 0;

	if (fd->ndim + 1 > PEN_MAX_DIMS)
		return pen__fail(w->err, P_CANNOT_WRITE_THIS, fd->name,
				 "more than %d axes cannot be written",
				 PEN_MAX_DIMS - 1);
	dims_of(w, i, dims);
	if (n > 1 && (!fd->ndim || dims[1] % n))
		return pen__fail(w->err, P_BAD_VALUE, "num_dset",
				 "the first axis of a sample cannot be split "
				 "into %u equal parts",
				 n);
	if (n > 1)
		dims[1] /= n;
	if (w->t->nfields > 1)
		return put(w, &(struct part){ fd->name, fd->dtype, fd->ndim + 1,
					      dims, w->data[i], false });
	for (unsigned k = 0; rc >= 0 && k < n; k++)
		rc = put_part(w, k, n, dims);
	return rc;
}

static int put_labels(const struct writer *w)
{
	const hsize_t n = w->t->nsamples;
	int64_t *zero = pen__calloc((size_t)n ? (size_t)n : 1, sizeof(*zero));
	int rc;

	if (!zero)
		return pen__fail_nomem(w->err, "hdf5", (size_t)n * 8);
	rc = put(w, &(struct part){ "labels", PEN_I64, 1, &n, zero, true });
	pen__free(zero);
	return rc;
}

/*
 * H5Fget_file_image() clears the "open for writing" flag in its copy of the
 * superblock, but version 1.10 does not update the checksum.
 */
static void sum_superblock(uint8_t *p, size_t n)
{
	uint32_t sum;

	if (n < SUPERBLOCK + 4 || p[8] < 2)
		return;
	sum = pen__lookup3(p, SUPERBLOCK);
	for (unsigned i = 0; i < 4; i++)
		p[SUPERBLOCK + i] = (uint8_t)(sum >> (8 * i));
}

/* Takes the bytes of the finished file. */
static int take_image(struct writer *w)
{
	ssize_t n;

	if (H5Fflush(w->file, H5F_SCOPE_GLOBAL) < 0)
		return failed(w, "finish the file");
	n = H5Fget_file_image(w->file, NULL, 0);
	if (n < 0)
		return failed(w, "determine the file size");
	w->image = pen__alloc((size_t)n, 1);
	if (!w->image)
		return pen__fail_nomem(w->err, "hdf5", (size_t)n);
	if (H5Fget_file_image(w->file, w->image, (size_t)n) != n)
		return failed(w, "return the file");
	w->image_size = (size_t)n;
	sum_superblock(w->image, (size_t)n);
	return 0;
}

/* The size of the file in memory: reserved once, since growing copies. */
static size_t image_room(const struct writer *w)
{
	size_t room = (size_t)1 << 20, row;

	for (uint32_t i = 0; i < w->t->nfields; i++)
		if (pen__shape_bytes(w->t->field[i].shape, w->t->field[i].ndim,
				     w->t->field[i].dtype, &row))
			room += row * (size_t)w->t->nsamples;
	return room;
}

static int make_image(struct writer *w, size_t room)
{
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
	hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);
	int rc = 0;

	w->file = -1;
	if (fapl >= 0 && H5Pset_obj_track_times(fcpl, false) >= 0 &&
	    H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >=
		    0 &&
	    H5Pset_fapl_core(fapl, room, false) >= 0)
		w->file = H5Fcreate("memory", H5F_ACC_TRUNC, fcpl, fapl);
	if (fapl >= 0)
		H5Pclose(fapl);
	if (fcpl >= 0)
		H5Pclose(fcpl);
	if (w->file < 0)
		return failed(w, "create a file in memory");
	for (uint32_t i = 0; rc >= 0 && i < w->t->nfields; i++)
		rc = put_field(w, i);
	if (rc >= 0 && w->t->nfields == 1 && w->p->labels)
		rc = put_labels(w);
	if (rc >= 0)
		rc = take_image(w);
	H5Fclose(w->file);
	return rc;
}

static int make_alone(struct writer *w)
{
	/* libhdf5 may grow its file by a copy, and we take another one */
	const size_t room = image_room(w), need = PEN_HDF5_ROOM + 3 * room;
	struct pen_hdf5_turn turn;
	int rc;

	if (!pen__can_alloc(need))
		return pen__fail_nomem(w->err, "hdf5", need);
	pen__hdf5_enter(&turn);
	rc = make_image(w, room);
	pen__hdf5_leave(&turn);
	return rc;
}

int pen__h5_write(const struct pen_format *f, const struct pen_table *t,
		  struct pen_out *out, struct pen_err *err)
{
	struct writer w = { .p = f->priv, .t = t, .err = err };
	int rc = 0;

	if (t->nfields > PEN_MAX_FIELDS)
		return pen__fail(err, P_CANNOT_WRITE_THIS, "hdf5",
				 "more than %d fields cannot be written",
				 PEN_MAX_FIELDS);
	for (uint32_t i = 0; !rc && i < t->nfields; i++) {
		w.data[i] = pen__table_get(t, i, &w.mem[i], err);
		if (!w.data[i])
			rc = err && err->code ? err->code : PEN_ENOMEM;
	}
	if (!rc)
		rc = make_alone(&w);
	for (uint32_t i = 0; i < t->nfields; i++)
		pen__free(w.mem[i]);
	if (rc >= 0)
		rc = out->write(out, w.image, w.image_size, err);
	pen__free(w.image);
	return rc;
}
