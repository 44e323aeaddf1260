/*
 * The h5ad writer, based on libhdf5. It uses the oldest file version, as h5py
 * does, so that every reader of h5ad can read it. Several threads compress the
 * chunks, which bypass libhdf5's filters; data that anndata stores contiguously
 * is contiguous here. libhdf5 does not learn of disk errors (hdf5_driver.c), so
 * every step checks for them.
 */
#include <errno.h>

#include "base/mem.h"
#include "format/cells/anndata_write.h"
#include "format/hdf5/hdf5_lib.h"

enum { NONE, GZIP, LZF, ZSTD };
enum { FILTER_LZF = 32000, FILTER_ZSTD = 32015 };

struct h5ad {
	struct pen_ad ad; /* must be first: the sink gets this address */
	/* options */
	int compression;
	/* handles of libhdf5 */
	hid_t file, text;
	struct pen_hdf5_disk disk;
	bool open;
};

#define OFF(x) offsetof(struct h5ad, x)
static const char *const compressions[] = { "none", "gzip", "lzf", "zstd",
					    NULL };
static const struct pen_opt opts[] = {
	{ .name = "compression",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(compression),
	  .dflt = "none",
	  .choices = compressions,
	  .help = "compression of the arrays (Python needs hdf5plugin to read "
		  "zstd)" },
	{ .name = "level",
	  .type = PEN_OPT_INT,
	  .off = OFF(ad.level),
	  .dflt = "0",
	  .min = 0,
	  .max = 22,
	  .help = "compression level (0: gzip 4, zstd 3)" },
	{ .name = "shuffle",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(ad.shuffle),
	  .dflt = "false",
	  .help = "apply the byte shuffle filter before compression" },
	{ .name = "chunk",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(ad.chunk),
	  .dflt = "0",
	  .help = "matrix values per chunk (0: as h5py chooses)" },
	{ .name = "threads",
	  .type = PEN_OPT_INT,
	  .off = OFF(ad.threads),
	  .dflt = "0",
	  .min = 0,
	  .max = 1024,
	  .help = "compression threads (0: one per CPU)" },
	{ .name = NULL },
};

/* libhdf5 aborts when it runs out of memory, so memory is reserved first. */
static int enter(const struct h5ad *h, struct pen_hdf5_turn *t,
		 struct pen_err *err)
{
	if (!pen__can_alloc(PEN_HDF5_ROOM))
		return pen__fail_nomem(err, h->ad.w->path, PEN_HDF5_ROOM);
	pen__hdf5_enter(t);
	return 0;
}

/* The result of a step: done is libhdf5's own, but the disk may have failed. */
static int outcome(const struct h5ad *h, bool done, const char *what,
		   struct pen_err *err)
{
	if (h->disk.sys)
		return pen__fail_sys(err, h->disk.sys, h->ad.w->path,
				     "cannot write");
	return done ? 0
		    : pen__fail(err, P_IO, h->ad.w->path,
				"libhdf5 could not %s", what);
}

/* ---- attributes ---- */

/* n values along one axis; ndim 0: a scalar. */
static bool put_attr(hid_t obj, const char *name, hid_t type, int ndim,
		     hsize_t n, const void *values)
{
	hid_t space = ndim ? H5Screate_simple(1, &n, NULL)
			   : H5Screate(H5S_SCALAR);
	hid_t at = H5Acreate2(obj, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	const bool ok = at >= 0 && (!n || H5Awrite(at, type, values) >= 0);

	if (at >= 0)
		H5Aclose(at);
	if (space >= 0)
		H5Sclose(space);
	return ok;
}

static bool put_text(const struct h5ad *h, hid_t obj, const char *name,
		     const char *value)
{
	return put_attr(obj, name, h->text, 0, 1, &value);
}

static bool put_columns(const struct h5ad *h, hid_t obj,
			const struct pen_ad_attrs *at)
{
	const char **names =
		pen__calloc((size_t)at->ncolumns + 1, sizeof(*names));
	hsize_t n = 0;
	bool ok;

	if (!names)
		return false;
	for (uint32_t i = 0; i < at->ncolumns; i++)
		if ((!at->columns[i].coded || !at->columns[i].index) &&
		    !at->columns[i].mask)
			names[n++] = at->columns[i].name;
	ok = put_attr(obj, "column-order", h->text, 1, n, names) &&
	     put_text(h, obj, "_index", at->index);
	pen__free(names);
	return ok;
}

static bool put_attrs(const struct h5ad *h, hid_t obj,
		      const struct pen_ad_attrs *at)
{
	bool ok = true;

	if (at->type)
		ok = put_text(h, obj, "encoding-type", at->type) &&
		     put_text(h, obj, "encoding-version", at->version);
	if (ok && at->shape)
		ok = put_attr(obj, "shape", H5T_STD_I64LE, 1, 2, at->shape);
	if (ok && at->index)
		ok = put_columns(h, obj, at);
	if (ok && at->ordered) {
		const int8_t v = *at->ordered;
		const hid_t type = pen__hdf5_type(PEN_BOOL);

		ok = put_attr(obj, "ordered", type, 0, 1, &v);
		H5Tclose(type);
	}
	return ok;
}

/* ---- nodes ---- */

static int h5ad_group(struct pen_ad *ad, const char *path,
		      const struct pen_ad_attrs *at, struct pen_err *err)
{
	const struct h5ad *h = (const struct h5ad *)ad;
	struct pen_hdf5_turn turn;
	hid_t id;
	int rc = enter(h, &turn, err);

	if (rc)
		return rc;
	id = *path ? H5Gcreate2(h->file, path, H5P_DEFAULT, H5P_DEFAULT,
				H5P_DEFAULT)
		   : H5Gopen2(h->file, "/", H5P_DEFAULT);
	rc = outcome(h, id >= 0 && put_attrs(h, id, at), "create a group", err);
	if (id >= 0)
		H5Gclose(id);
	pen__hdf5_leave(&turn);
	return rc;
}

static bool set_filters(const struct h5ad *h, hid_t dcpl,
			const struct pen_ad_array *a)
{
	const unsigned level = (unsigned)h->ad.how.level;
	/* h5py's: revision, LZF version, bytes of a chunk */
	const unsigned lzf[3] = { 4, 0x0105, (unsigned)(a->chunk * a->row) };
	bool ok = true;

	if (h->ad.shuffle && h->compression != NONE)
		ok = H5Pset_shuffle(dcpl) >= 0;
	if (ok && h->compression == GZIP)
		ok = H5Pset_deflate(dcpl, level > 9 ? 9 : level) >= 0;
	/* optional, so that libhdf5 does not require a filter it lacks */
	if (ok && h->compression == LZF)
		ok = H5Pset_filter(dcpl, FILTER_LZF, H5Z_FLAG_OPTIONAL, 3,
				   lzf) >= 0;
	if (ok && h->compression == ZSTD)
		ok = H5Pset_filter(dcpl, FILTER_ZSTD, H5Z_FLAG_OPTIONAL, 1,
				   &level) >= 0;
	return ok;
}

/* Arrays that anndata makes resizable are always chunked, others only if
 * compressed. */
static bool set_layout(const struct h5ad *h, hid_t dcpl, struct pen_ad_array *a)
{
	const hsize_t chunk[2] = { a->chunk, a->ncols };

	if (H5Pset_obj_track_times(dcpl, false) < 0)
		return false;
	if (a->text ||
	    (!a->grows && (h->compression == NONE || !a->nrows || !a->row))) {
		a->plain = a->ragged = true;
		return true;
	}
	/* all chunks will be written, so none is filled in advance */
	return H5Pset_chunk(dcpl, a->list ? 1 : 2, chunk) >= 0 &&
	       H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER) >= 0 &&
	       set_filters(h, dcpl, a);
}

static int h5ad_array(struct pen_ad *ad, struct pen_ad_array *a,
		      const struct pen_ad_attrs *at, struct pen_err *err)
{
	const struct h5ad *h = (const struct h5ad *)ad;
	const hsize_t dims[2] = { a->nrows, a->ncols };
	const hsize_t most[2] = { H5S_UNLIMITED, a->ncols };
	struct pen_hdf5_turn turn;
	hid_t dcpl, type, space;
	int rc = enter(h, &turn, err);

	if (rc)
		return rc;
	dcpl = H5Pcreate(H5P_DATASET_CREATE);
	type = a->text ? H5Tcopy(h->text) : pen__hdf5_type(a->dtype);
	space = H5Screate_simple(a->list ? 1 : 2, dims, a->grows ? most : NULL);
	a->id = -1;
	if (dcpl >= 0 && type >= 0 && set_layout(h, dcpl, a))
		a->id = H5Dcreate2(h->file, a->path, type, space, H5P_DEFAULT,
				   dcpl, H5P_DEFAULT);
	rc = outcome(h, a->id >= 0 && put_attrs(h, a->id, at),
		     "create a data set", err);
	H5Pclose(dcpl);
	H5Sclose(space);
	H5Tclose(type);
	pen__hdf5_leave(&turn);
	return rc;
}

/* ---- chunks ---- */

/* Rows of a contiguous array. */
static bool write_rows(const struct pen_ad_array *a,
		       const struct pen_ad_chunk *c, hid_t type,
		       const void *rows)
{
	const hsize_t start[2] = { c->number * a->chunk, 0 };
	const hsize_t count[2] = { c->nrows, a->ncols };
	const hid_t file = H5Dget_space(a->id);
	const hid_t mem = H5Screate_simple(a->list ? 1 : 2, count, NULL);
	const bool ok = H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL,
					    count, NULL) >= 0 &&
			H5Dwrite(a->id, type, mem, file, H5P_DEFAULT, rows) >=
				0;

	H5Sclose(mem);
	H5Sclose(file);
	return ok;
}

/* libhdf5 takes pointers to NUL-terminated strings. */
static bool write_texts(const struct h5ad *h, const struct pen_ad_array *a,
			const struct pen_ad_chunk *c)
{
	const size_t n = (size_t)c->nrows;
	const char **list = pen__alloc(n, sizeof(*list));
	char *text = pen__alloc(c->n, 1);
	struct pen_bytes b = pen__bytes(c->p, c->n);
	char *to = text;
	bool ok = list && text;

	pen__take_u32(&b);
	for (size_t i = 0; ok && i < n; i++) {
		const uint32_t len = pen__take_u32(&b);
		const uint8_t *p = pen__take(&b, len);

		/* the 4 bytes of the length leave room for the NUL */
		list[i] = to;
		memcpy(to, p, len);
		to[len] = '\0';
		to += len + 1;
	}
	ok = ok && !b.bad && write_rows(a, c, h->text, list);
	pen__free(list);
	pen__free(text);
	return ok;
}

static int h5ad_chunk(struct pen_ad *ad, struct pen_ad_array *a,
		      const struct pen_ad_chunk *c, struct pen_err *err)
{
	const struct h5ad *h = (const struct h5ad *)ad;
	const hsize_t at[2] = { c->number * a->chunk, 0 };
	/* the compressor is last in the pipeline */
	const uint32_t mask = c->unpacked ? 1u << h->ad.shuffle : 0;
	struct pen_hdf5_turn turn;
	hid_t type;
	bool ok;
	int rc = enter(h, &turn, err);

	if (rc)
		return rc;
	if (a->text) {
		ok = write_texts(h, a, c);
	} else if (a->ragged) {
		type = pen__hdf5_type(a->dtype);
		ok = write_rows(a, c, type, c->p);
		H5Tclose(type);
	} else {
		ok = H5Dwrite_chunk(a->id, H5P_DEFAULT, mask, at, c->n, c->p) >=
		     0;
	}
	rc = outcome(h, ok, "write a chunk", err);
	pen__hdf5_leave(&turn);
	return rc;
}

static const struct pen_ad_sink sink = {
	.chunk_base = 16 << 10,
	.group = h5ad_group,
	.array = h5ad_array,
	.chunk = h5ad_chunk,
};

/* ---- the writer ---- */

static int make_file(struct h5ad *h, struct pen_cells_writer *w,
		     struct pen_err *err)
{
	struct pen_hdf5_turn turn;
	hid_t fapl, fcpl;
	int rc = enter(h, &turn, err);

	if (rc)
		return rc;
	fapl = H5Pcreate(H5P_FILE_ACCESS);
	fcpl = H5Pcreate(H5P_FILE_CREATE);
	h->text = H5Tcopy(H5T_C_S1);
	h->file = -1;
	/* closing the file closes all open objects, even after a failure */
	if (h->text >= 0 && H5Tset_size(h->text, H5T_VARIABLE) >= 0 &&
	    H5Tset_cset(h->text, H5T_CSET_UTF8) >= 0 &&
	    H5Pset_obj_track_times(fcpl, false) >= 0 &&
	    H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) >= 0 &&
	    pen__hdf5_set_driver(fapl, &h->disk))
		h->file = H5Fcreate(w->tmp, H5F_ACC_TRUNC, fcpl, fapl);
	h->open = h->file >= 0;
	rc = outcome(h, h->open, "create the file", err);
	H5Pclose(fapl);
	H5Pclose(fcpl);
	pen__hdf5_leave(&turn);
	return rc;
}

static int h5ad_open(struct pen_cells_writer *w, struct pen_err *err)
{
	static const char *const packers[] = { NULL, "zlib", "lzf", "zstd" };
	struct h5ad *h = w->priv;
	int rc = 0;

	if (h->compression != NONE)
		rc = pen__ad_compress(&h->ad, packers[h->compression],
				      compressions[h->compression], err);
	if (rc)
		return rc;
	h->ad.w = w;
	h->ad.sink = &sink;
	rc = make_file(h, w, err);
	return rc ? rc : pen__ad_open(&h->ad, w, err);
}

static int h5ad_finish(struct pen_cells_writer *w, struct pen_err *err)
{
	struct h5ad *h = w->priv;
	struct pen_hdf5_turn turn;
	int rc = pen__ad_finish(&h->ad, err);

	if (rc)
		return rc;
	pen__hdf5_enter(&turn);
	h->open = false;
	rc = outcome(h, H5Fclose(h->file) >= 0, "finish the file", err);
	pen__hdf5_leave(&turn);
	return rc;
}

static void h5ad_close(struct pen_cells_writer *w)
{
	struct h5ad *h = w->priv;
	struct pen_hdf5_turn turn;

	pen__ad_close(&h->ad);
	pen__hdf5_enter(&turn);
	if (h->open) { /* after a failure nothing more is written */
		h->disk.sys = h->disk.sys ? h->disk.sys : ECANCELED;
		H5Fclose(h->file);
	}
	if (h->text > 0)
		H5Tclose(h->text);
	pen__hdf5_leave(&turn);
}

const struct pen_cells_writer_ops pen__cells_h5ad_write = {
	.name = "h5ad",
	.help = "AnnData in HDF5, as written by anndata 0.8 and later",
	.suffix = ".h5ad",
	.opts = opts,
	.priv_size = sizeof(struct h5ad),
	.open = h5ad_open,
	.rows = pen__ad_rows,
	.finish = h5ad_finish,
	.close = h5ad_close,
};
