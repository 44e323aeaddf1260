/*
 * The writer of HDF5, through libhdf5 and in its newest file version, as DLIO
 * writes: records_0, records_1, ... with the samples along axis 0, and labels.
 * A file is made in memory and then handed out in one piece, because libhdf5
 * wants to seek and a pen_out only takes bytes. libhdf5 does one thing at a
 * time: the values are made before, and the file handed out after. Refuses
 * nothing the fields can be but complex numbers.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/lzf.h"
#include "format/hdf5/hdf5_fields.h"
#include "format/hdf5/hdf5_int.h"
#include "format/hdf5/hdf5_lib.h"

#define LZF 32000
#define SUPERBLOCK 44u /* bytes under the checksum, versions 2 and 3 */

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
	return pen__fail(w->err, PEN_EIO, "hdf5", "libhdf5 could not %s", what);
}

/*
 * LZF for libhdf5, which does not have it: only packing, as nothing is read
 * here. 0 tells it to store the chunk as it is. The buffer is libhdf5's, made
 * with its allocator.
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

/* "1x64x64": exactly n positive numbers. */
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

/* Chunks no longer than the axis is, or may become. */
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

/* Layout and filters; a compressed or growing data set without a chunk shape
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
		return pen__fail(w->err, PEN_EINVAL, "chunk",
				 "is not a shape of %u numbers, like 1x64x64",
				 n);
	if (!p->chunk && !p->compression && !p->maxshape)
		return 0;
	ok = H5Pset_chunk(dcpl, (int)n, chunk) >= 0;
	if (ok && p->shuffle)
		ok = H5Pset_shuffle(dcpl) >= 0;
	if (ok && p->compression == 1)
		ok = H5Pset_deflate(dcpl, (unsigned)p->level) >= 0;
	for (unsigned i = 0; i < n; i++)
		items *= chunk[i];
	/* h5py's: revision, LZF version, bytes of a chunk */
	lzf_says[2] = (unsigned)(items * size);
	if (ok && p->compression == 2)
		ok = H5Zregister(&lzf_filter) >= 0 &&
		     H5Pset_filter(dcpl, LZF, H5Z_FLAG_OPTIONAL, 3, lzf_says) >=
			     0;
	return ok ? 0 : failed(w, "set chunks or filters");
}

/* How far the axes may grow: samples never. */
static int set_most(const struct writer *w, unsigned n, const hsize_t *dims,
		    hsize_t *most)
{
	memcpy(most, dims, n * sizeof(*dims));
	if (!w->p->maxshape)
		return 0;
	if (!parse_dims(w->p->maxshape, n - 1, most + 1))
		return pen__fail(w->err, PEN_EINVAL, "maxshape",
				 "is not a shape of %u numbers, like 64x64",
				 n - 1);
	for (unsigned i = 1; i < n; i++)
		if (most[i] < dims[i])
			return pen__fail(w->err, PEN_EINVAL, "maxshape",
					 "is below the data's own shape");
	return 0;
}

/* One data set of whole samples, or of a part of each. */
static int put(const struct writer *w, const char *name, enum pen_dtype dtype,
	       unsigned n, const hsize_t *dims, const void *data, bool plain)
{
	hid_t type = pen__hdf5_type(dtype), space = -1;
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), set = -1;
	hsize_t most[PEN_MAX_DIMS + 1];
	int rc = 0;

	/* the same data, the same bytes, whenever they are written */
	H5Pset_obj_track_times(dcpl, false);
	if (type < 0)
		rc = pen__fail(w->err, PEN_ENOTSUP, name,
			       "%s cannot be written as HDF5",
			       pen_dtype_name(dtype));
	if (!rc && !plain)
		rc = set_most(w, n, dims, most);
	if (!rc && !plain)
		rc = set_layout(w, dcpl, n, dims, most, pen_dtype_size(dtype));
	if (!rc)
		space = H5Screate_simple((int)n, dims, plain ? NULL : most);
	if (!rc)
		set = H5Dcreate2(w->file, name, type, space, H5P_DEFAULT, dcpl,
				 H5P_DEFAULT);
	if (!rc && (set < 0 || H5Dwrite(set, type, H5S_ALL, H5S_ALL,
					H5P_DEFAULT, data) < 0))
		rc = failed(w, "write a data set");
	if (set >= 0)
		H5Dclose(set);
	if (type >= 0)
		H5Tclose(type);
	H5Pclose(dcpl);
	if (space >= 0)
		H5Sclose(space);
	return rc;
}

/* Part i of n of every sample, gathered. A part that is one long drops its
 * axis, as DLIO's do. */
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
		return failed(w, "write samples of this size");
	snprintf(name, sizeof(name), "records_%u", i);
	if (ndim == fd->ndim) {
		less[0] = dims[0];
		memcpy(less + 1, dims + 2, (ndim - 1) * sizeof(*dims));
		dims = less;
	}
	if (n == 1)
		return put(w, name, fd->dtype, ndim, dims, data, false);
	part = row / n;
	mem = pen__alloc((size_t)w->t->nsamples ? (size_t)w->t->nsamples : 1,
			 part ? part : 1);
	if (!mem)
		return pen__fail_nomem(w->err, "hdf5", part);
	for (uint64_t k = 0; part && k < w->t->nsamples; k++)
		memcpy(mem + k * part, data + k * row + i * part, part);
	rc = put(w, name, fd->dtype, ndim, dims, mem, false);
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
		return failed(w, "write so many axes");
	dims_of(w, i, dims);
	if (n > 1 && (!fd->ndim || dims[1] % n))
		return pen__fail(w->err, PEN_EINVAL, "num_dset",
				 "a sample's first axis cannot be cut into %u",
				 n);
	if (n > 1)
		dims[1] /= n;
	if (w->t->nfields > 1)
		return put(w, fd->name, fd->dtype, fd->ndim + 1, dims,
			   w->data[i], false);
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
	rc = put(w, "labels", PEN_I64, 1, &n, zero, true);
	pen__free(zero);
	return rc;
}

/*
 * H5Fget_file_image() clears the "open for writing" flag in the superblock it
 * copies, but in 1.10 leaves the checksum that was made with it.
 */
static void sum_superblock(uint8_t *p, size_t n)
{
	uint32_t sum;

	if (n < SUPERBLOCK + 4 || p[8] < 2)
		return;
	sum = pen__h5_sum(p, SUPERBLOCK);
	for (unsigned i = 0; i < 4; i++)
		p[SUPERBLOCK + i] = (uint8_t)(sum >> (8 * i));
}

/* The finished file's bytes. */
static int take_image(struct writer *w)
{
	ssize_t n;

	if (H5Fflush(w->file, H5F_SCOPE_GLOBAL) < 0)
		return failed(w, "finish the file");
	n = H5Fget_file_image(w->file, NULL, 0);
	if (n < 0)
		return failed(w, "tell the file's size");
	w->image = pen__alloc((size_t)n, 1);
	if (!w->image)
		return pen__fail_nomem(w->err, "hdf5", (size_t)n);
	if (H5Fget_file_image(w->file, w->image, (size_t)n) != n)
		return failed(w, "hand out the file");
	w->image_size = (size_t)n;
	sum_superblock(w->image, (size_t)n);
	return 0;
}

static int make_image(struct writer *w)
{
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
	hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);
	size_t room = (size_t)1 << 20, row;
	int rc = 0;

	/* grown once, as each time is a copy */
	for (uint32_t i = 0; i < w->t->nfields; i++)
		if (pen__shape_bytes(w->t->field[i].shape, w->t->field[i].ndim,
				     w->t->field[i].dtype, &row))
			room += row * (size_t)w->t->nsamples;

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
		return failed(w, "make a file in memory");
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
	struct pen_hdf5_turn turn;
	int rc;

	if (!pen__can_alloc(PEN_HDF5_ROOM))
		return pen__fail_nomem(w->err, "hdf5", PEN_HDF5_ROOM);
	pen__hdf5_enter(&turn);
	rc = make_image(w);
	pen__hdf5_leave(&turn);
	return rc;
}

int pen__h5_write(const struct pen_format *f, const struct pen_table *t,
		  struct pen_out *out, struct pen_err *err)
{
	struct writer w = { .p = f->priv, .t = t, .err = err };
	int rc = 0;

	if (t->nfields > PEN_MAX_FIELDS)
		return failed(&w, "write so many fields");
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
