/*
 * The zarr writer, for directories: version 2 as anndata and zarr-python 2
 * write it, with Blosc if available; or version 3, where chunks of the matrix
 * can be grouped into shards with an index at the end. Refuses names that JSON
 * would have to escape.
 */
#include "format/cells/zarr_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/crc32c.h"

#define SHARD_MOST ((uint64_t)1 << 20) /* chunks */

struct shard {
	int fd; /* -1: none open */
	uint64_t end;
	struct pen_buf index; /* 16 bytes per chunk */
};

#define OFF(x) offsetof(struct pen_zarr_write, x)
static const char *const versions[] = { "2", "3", NULL };
static const char *const compressions[] = { "auto", "blosc", "zstd",
					    "gzip", "none",  NULL };
static const struct pen_opt opts[] = {
	{ .name = "version",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(version),
	  .dflt = "2",
	  .choices = versions,
	  .help = "version of the zarr format" },
	{ .name = "compression",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(compression),
	  .dflt = "auto",
	  .choices = compressions,
	  .help = "compression of all arrays (auto: blosc with lz4 and "
		  "shuffle, or gzip in a build without blosc)" },
	{ .name = "level",
	  .type = PEN_OPT_INT,
	  .off = OFF(ad.level),
	  .dflt = "0",
	  .min = 0,
	  .max = 22,
	  .help = "compression level (0: blosc 5, zstd 3, gzip 4)" },
	{ .name = "chunk",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(ad.chunk),
	  .dflt = "0",
	  .help = "matrix values per chunk (0: as zarr chooses)" },
	{ .name = "shard",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(shard),
	  .dflt = "0",
	  .help = "approximate number of cells per shard, version 3 only (0: "
		  "one file per chunk)" },
	{ .name = "threads",
	  .type = PEN_OPT_INT,
	  .off = OFF(ad.threads),
	  .dflt = "0",
	  .min = 0,
	  .max = 1024,
	  .help = "compression threads (0: one per CPU)" },
	{ .name = NULL },
};

/* ---- nodes ---- */

static int make_dir(const struct pen_ad *ad, const char *path,
		    const char *below, struct pen_err *err)
{
	char dir[4096];

	for (const char *p = path; *p; p++)
		if (*p == '\\' || (unsigned char)*p < ' ')
			return pen__fail(err, P_UNSUPPORTED_FEATURE, path,
					 "not a valid zarr name: it contains a "
					 "backslash or a control character");
	if (snprintf(dir, sizeof(dir), "%s/%s%s", ad->w->tmp, path, below) >=
	    (int)sizeof(dir))
		return pen__fail(err, P_TOO_LONG, path, "the name is too long");
	if (mkdir(dir, 0777))
		return pen__fail_sys(err, errno, ad->w->path, "cannot write");
	return 0;
}

static int zarr_group(struct pen_ad *ad, const char *path,
		      const struct pen_ad_attrs *at, struct pen_err *err)
{
	struct pen_zarr_write *z = (struct pen_zarr_write *)ad;
	int rc = make_dir(ad, path, "", err);

	return rc ? rc : pen__zarr_put_group(z, path, at, err);
}

/* Chunks per shard; 0: no shards. */
static uint64_t shard_of(const struct pen_zarr_write *z,
			 const struct pen_ad_array *a)
{
	const struct pen_cells_spec *s = z->ad.w->spec;
	const uint64_t most = (a->nrows + a->chunk - 1) / a->chunk;
	double rows = (double)z->shard;
	uint64_t n;

	if (!a->is_x || !z->shard || !a->nrows)
		return 0;
	if (a->list)
		rows *= (double)s->nnz / (double)s->nrows;
	n = rows / (double)a->chunk < (double)SHARD_MOST
		    ? (uint64_t)(rows / (double)a->chunk)
		    : SHARD_MOST;
	n = n < most ? n : most;
	return n ? n : 1;
}

static int zarr_array(struct pen_ad *ad, struct pen_ad_array *a,
		      const struct pen_ad_attrs *at, struct pen_err *err)
{
	struct pen_zarr_write *z = (struct pen_zarr_write *)ad;
	struct shard *sh;
	int rc;

	a->nchunks = shard_of(z, a);
	if (a->nchunks) {
		sh = pen__calloc(1, sizeof(*sh));
		if (!sh)
			return pen__fail_nomem(err, a->path, sizeof(*sh));
		sh->fd = -1;
		a->priv = sh;
	}
	rc = make_dir(ad, a->path, "", err);
	if (!rc && pen__zarr_v3(z))
		rc = make_dir(ad, a->path, "/c", err);
	return rc ? rc : pen__zarr_put_array(z, a, at, err);
}

/* ---- chunks ---- */

static int write_all(const struct pen_ad *ad, int fd, const uint8_t *p,
		     size_t n, struct pen_err *err)
{
	while (n) {
		const ssize_t k = write(fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return pen__fail_sys(err, errno, ad->w->path,
					     "cannot write");
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

/* Opens the file of a chunk or shard; arrays with two axes have one column
 * of chunks. */
static int open_chunk(const struct pen_ad *ad, const struct pen_ad_array *a,
		      uint64_t number, struct pen_err *err)
{
	const bool v3 = pen__zarr_v3((const struct pen_zarr_write *)ad);
	char path[4096];
	int fd = -1;

	if (v3 && !a->list) {
		snprintf(path, sizeof(path), "/c/%llu",
			 (unsigned long long)number);
		if (make_dir(ad, a->path, path, err))
			return -1;
	}
	if (snprintf(path, sizeof(path), "%s/%s%s/%llu%s", ad->w->tmp, a->path,
		     v3 ? "/c" : "", (unsigned long long)number,
		     a->list ? ""
		     : v3    ? "/0"
			     : ".0") < (int)sizeof(path))
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		pen__fail_sys(err, errno, ad->w->path, "cannot write");
	return fd;
}

static int close_chunk(const struct pen_ad *ad, int fd, int rc,
		       struct pen_err *err)
{
	if (close(fd) && !rc)
		rc = pen__fail_sys(err, errno, ad->w->path, "cannot write");
	return rc;
}

/* Chunks beyond the end of the array are marked as absent. */
static int finish_shard(const struct pen_ad *ad, const struct pen_ad_array *a,
			struct pen_err *err)
{
	struct shard *sh = a->priv;
	const int fd = sh->fd;
	uint32_t crc;
	int rc;

	while (!sh->index.bad && sh->index.n < a->nchunks * 16)
		pen__buf_le(&sh->index, UINT64_MAX, 8);
	crc = sh->index.bad ? 0 : pen__crc32c(0, sh->index.p, sh->index.n);
	pen__buf_le(&sh->index, crc, 4);
	if (sh->index.bad)
		rc = pen__fail_nomem(err, a->path, (size_t)a->nchunks * 16);
	else
		rc = write_all(ad, fd, sh->index.p, sh->index.n, err);
	sh->fd = -1;
	return close_chunk(ad, fd, rc, err);
}

static int put_in_shard(const struct pen_ad *ad, const struct pen_ad_array *a,
			const struct pen_ad_chunk *c, struct pen_err *err)
{
	struct shard *sh = a->priv;
	const bool last = c->number * a->chunk + c->nrows == a->nrows;
	int rc;

	if (sh->fd < 0) {
		sh->fd = open_chunk(ad, a, c->number / a->nchunks, err);
		if (sh->fd < 0)
			return PEN_EIO;
		sh->end = 0;
		sh->index.n = 0;
	}
	rc = write_all(ad, sh->fd, c->p, c->n, err);
	if (rc)
		return rc;
	pen__buf_le(&sh->index, sh->end, 8);
	pen__buf_le(&sh->index, c->n, 8);
	sh->end += c->n;
	return last || (c->number + 1) % a->nchunks == 0
		       ? finish_shard(ad, a, err)
		       : 0;
}

static int zarr_chunk(struct pen_ad *ad, struct pen_ad_array *a,
		      const struct pen_ad_chunk *c, struct pen_err *err)
{
	int fd;

	if (a->nchunks)
		return put_in_shard(ad, a, c, err);
	fd = open_chunk(ad, a, c->number, err);
	if (fd < 0)
		return PEN_EIO;
	return close_chunk(ad, fd, write_all(ad, fd, c->p, c->n, err), err);
}

static const struct pen_ad_sink sink = {
	.chunk_base = 256 << 10,
	.group = zarr_group,
	.array = zarr_array,
	.chunk = zarr_chunk,
};

/* ---- the writer ---- */

static int zarr_open(struct pen_cells_writer *w, struct pen_err *err)
{
	struct pen_zarr_write *z = w->priv;
	int rc = 0;

	if (z->shard && !pen__zarr_v3(z))
		return pen__fail(err, P_CONFLICT, "shard",
				 "requires version=3");
	if (z->compression == PEN_ZARR_AUTO)
		z->compression = pen__packer_find("blosc") ? PEN_ZARR_BLOSC
							   : PEN_ZARR_GZIP;
	if (z->compression != PEN_ZARR_NONE)
		rc = pen__ad_compress(&z->ad, compressions[z->compression],
				      compressions[z->compression], err);
	if (rc)
		return rc;
	z->ad.sink = &sink;
	return pen__ad_open(&z->ad, w, err);
}

static int zarr_finish(struct pen_cells_writer *w, struct pen_err *err)
{
	struct pen_zarr_write *z = w->priv;
	const int rc = pen__ad_finish(&z->ad, err);

	return rc || pen__zarr_v3(z) ? rc : pen__zarr_put_all(z, err);
}

static void zarr_close(struct pen_cells_writer *w)
{
	struct pen_zarr_write *z = w->priv;

	for (uint32_t i = 0; i < z->ad.narrays; i++) {
		struct shard *sh = z->ad.array[i]->priv;

		if (!sh)
			continue;
		if (sh->fd >= 0)
			close(sh->fd);
		pen__buf_fini(&sh->index);
	}
	pen__text_fini(&z->all);
	pen__ad_close(&z->ad);
}

const struct pen_cells_writer_ops pen__cells_zarr_write = {
	.name = "zarr",
	.help = "AnnData in a zarr directory, version 2 or 3",
	.suffix = ".zarr",
	.opts = opts,
	.priv_size = sizeof(struct pen_zarr_write),
	.open = zarr_open,
	.rows = pen__ad_rows,
	.finish = zarr_finish,
	.close = zarr_close,
};
