/*
 * Metadata of zarr groups and arrays: .zgroup, .zattrs and .zarray in version
 * 2, with a copy of all in .zmetadata; zarr.json in version 3.
 */
#include <stdio.h>

#include "format/cells/zarr_write.h"

/* Writes a document to its file and, in version 2, to the consolidated copy. */
static int save(struct pen_zarr_write *z, struct pen_text *doc,
		const char *path, const char *name, struct pen_err *err)
{
	char dir[4096], key[4096];

	if (!pen__zarr_v3(z) && !doc->failed) {
		snprintf(key, sizeof(key), "%s%s%s", path, *path ? "/" : "",
			 name);
		z->all.ascii = true;
		pen__text_add(&z->all, "%s", z->all.n ? ",\n" : "");
		pen__json_quote(&z->all, key);
		pen__text_add(&z->all, ": ");
		pen__text_put(&z->all, doc->p, doc->n - 1); /* no new line */
	}
	if (snprintf(dir, sizeof(dir), "%s/%s", z->ad.w->tmp, path) <
	    (int)sizeof(dir))
		return pen__text_save_in(doc, dir, name, false, err);
	pen__text_fini(doc);
	return pen__fail(err, P_TOO_LONG, path, "the name is too long");
}

/* zarr 2 accepts ASCII only. */
static struct pen_text begin(void)
{
	struct pen_text t = { .compact = true, .ascii = true };

	pen__json_open(&t, NULL, '{');
	return t;
}

/* ---- attributes ---- */

static void put_attrs(struct pen_text *t, const struct pen_ad_attrs *at)
{
	if (at->type) {
		pen__json_str(t, "encoding-type", at->type);
		pen__json_str(t, "encoding-version", at->version);
	}
	if (at->shape) {
		pen__json_open(t, "shape", '[');
		pen__json_int(t, NULL, at->shape[0]);
		pen__json_int(t, NULL, at->shape[1]);
		pen__json_close(t, ']');
	}
	if (at->index) {
		pen__json_str(t, "_index", at->index);
		pen__json_open(t, "column-order", '[');
		for (uint32_t i = 0; i < at->ncolumns; i++)
			if ((!at->columns[i].coded || !at->columns[i].index) &&
			    !at->columns[i].mask)
				pen__json_str(t, NULL, at->columns[i].name);
		pen__json_close(t, ']');
	}
	if (at->ordered)
		pen__json_bool(t, "ordered", *at->ordered);
}

static int save_attrs(struct pen_zarr_write *z, const char *path,
		      const struct pen_ad_attrs *at, struct pen_err *err)
{
	struct pen_text t = begin();

	put_attrs(&t, at);
	pen__json_close(&t, '}');
	return save(z, &t, path, ".zattrs", err);
}

/* ---- groups ---- */

int pen__zarr_put_group(struct pen_zarr_write *z, const char *path,
			const struct pen_ad_attrs *at, struct pen_err *err)
{
	struct pen_text t = begin();
	int rc;

	if (pen__zarr_v3(z)) {
		pen__json_int(&t, "zarr_format", 3);
		pen__json_str(&t, "node_type", "group");
		pen__json_open(&t, "attributes", '{');
		put_attrs(&t, at);
		pen__json_close(&t, '}');
		pen__json_close(&t, '}');
		return save(z, &t, path, "zarr.json", err);
	}
	pen__json_int(&t, "zarr_format", 2);
	pen__json_close(&t, '}');
	rc = save(z, &t, path, ".zgroup", err);
	return rc ? rc : save_attrs(z, path, at, err);
}

/* ---- arrays ---- */

static void put_shape(struct pen_text *t, const char *key,
		      const struct pen_ad_array *a, uint64_t rows)
{
	pen__json_open(t, key, '[');
	pen__json_int(t, NULL, rows);
	if (!a->list)
		pen__json_int(t, NULL, a->ncols ? a->ncols : 1);
	pen__json_close(t, ']');
}

static void put_fill(struct pen_text *t, const struct pen_ad_array *a)
{
	if (a->text)
		pen__json_str(t, "fill_value", "");
	else if (a->dtype == PEN_BOOL)
		pen__json_bool(t, "fill_value", false);
	else
		pen__json_int(t, "fill_value", 0);
}

/* NumPy's: "<f4" */
static void put_dtype(struct pen_text *t, const struct pen_ad_array *a)
{
	static const char kinds[PEN_F64 + 1] = { 'b', 'i', 'u', 'i', 'u', 'i',
						 'u', 'i', 'u', 'f', 'f', 'f' };
	const size_t n = pen_dtype_size(a->dtype);
	char name[8];

	snprintf(name, sizeof(name), "%c%c%u", n == 1 ? '|' : '<',
		 kinds[a->dtype], (unsigned)n);
	/* the JSON writer would escape '<' */
	pen__text_add(t, ", \"dtype\": \"%s\"", a->text ? "|O" : name);
}

static void put_compressor(struct pen_text *t, const struct pen_zarr_write *z)
{
	const int level = z->ad.how.level;

	if (!z->ad.packer) {
		pen__text_add(t, ", \"compressor\": null");
		return;
	}
	pen__json_open(t, "compressor", '{');
	pen__json_str(t, "id", z->ad.packer->name);
	if (z->compression == PEN_ZARR_BLOSC) {
		pen__json_str(t, "cname", "lz4");
		pen__json_int(t, "clevel", (uint64_t)level);
		pen__json_int(t, "shuffle", 1);
		pen__json_int(t, "blocksize", 0);
	} else {
		pen__json_int(t, "level", (uint64_t)level);
	}
	pen__json_close(t, '}');
}

static int put_v2(struct pen_zarr_write *z, const struct pen_ad_array *a,
		  const struct pen_ad_attrs *at, struct pen_err *err)
{
	struct pen_text t = begin();
	int rc;

	pen__json_int(&t, "zarr_format", 2);
	put_shape(&t, "shape", a, a->nrows);
	put_shape(&t, "chunks", a, a->chunk);
	put_dtype(&t, a);
	put_fill(&t, a);
	pen__json_str(&t, "order", "C");
	put_compressor(&t, z);
	if (a->text) {
		pen__json_open(&t, "filters", '[');
		pen__json_open(&t, NULL, '{');
		pen__json_str(&t, "id", "vlen-utf8");
		pen__json_close(&t, '}');
		pen__json_close(&t, ']');
	} else {
		pen__text_add(&t, ", \"filters\": null");
	}
	pen__json_close(&t, '}');
	rc = save(z, &t, a->path, ".zarray", err);
	return rc || !at->type ? rc : save_attrs(z, a->path, at, err);
}

/* {"name": ..., "configuration": { both left open */
static void open_named(struct pen_text *t, const char *key, const char *name)
{
	pen__json_open(t, key, '{');
	pen__json_str(t, "name", name);
	pen__json_open(t, "configuration", '{');
}

static void close_named(struct pen_text *t)
{
	pen__json_close(t, '}');
	pen__json_close(t, '}');
}

static void put_bytes(struct pen_text *t, bool text)
{
	open_named(t, NULL, text ? "vlen-utf8" : "bytes");
	if (!text)
		pen__json_str(t, "endian", "little");
	close_named(t);
}

static void put_packing(struct pen_text *t, const struct pen_zarr_write *z,
			const struct pen_ad_array *a)
{
	const uint64_t level = (uint64_t)z->ad.how.level;

	if (!z->ad.packer)
		return;
	open_named(t, NULL, z->ad.packer->name);
	if (z->compression == PEN_ZARR_BLOSC) {
		pen__json_str(t, "cname", "lz4");
		pen__json_int(t, "clevel", level);
		pen__json_str(t, "shuffle", "shuffle");
		pen__json_int(t, "typesize",
			      a->text ? 1 : pen_dtype_size(a->dtype));
		pen__json_int(t, "blocksize", 0);
	} else {
		pen__json_int(t, "level", level);
		if (z->compression == PEN_ZARR_ZSTD)
			pen__json_bool(t, "checksum", false);
	}
	close_named(t);
}

static void put_codecs(struct pen_text *t, const struct pen_zarr_write *z,
		       const struct pen_ad_array *a)
{
	pen__json_open(t, "codecs", '[');
	if (a->nchunks) {
		open_named(t, NULL, "sharding_indexed");
		put_shape(t, "chunk_shape", a, a->chunk);
		pen__json_open(t, "codecs", '[');
	}
	put_bytes(t, a->text);
	put_packing(t, z, a);
	pen__json_close(t, ']');
	if (!a->nchunks)
		return;
	pen__json_open(t, "index_codecs", '[');
	put_bytes(t, false);
	pen__json_open(t, NULL, '{');
	pen__json_str(t, "name", "crc32c");
	pen__json_close(t, '}');
	pen__json_close(t, ']');
	pen__json_str(t, "index_location", "end");
	close_named(t);
	pen__json_close(t, ']');
}

static int put_v3(struct pen_zarr_write *z, const struct pen_ad_array *a,
		  const struct pen_ad_attrs *at, struct pen_err *err)
{
	struct pen_text t = begin();

	pen__json_int(&t, "zarr_format", 3);
	pen__json_str(&t, "node_type", "array");
	put_shape(&t, "shape", a, a->nrows);
	pen__json_str(&t, "data_type",
		      a->text ? "string" : pen_dtype_name(a->dtype));
	open_named(&t, "chunk_grid", "regular");
	put_shape(&t, "chunk_shape", a,
		  a->chunk * (a->nchunks ? a->nchunks : 1));
	close_named(&t);
	open_named(&t, "chunk_key_encoding", "default");
	pen__json_str(&t, "separator", "/");
	close_named(&t);
	put_fill(&t, a);
	put_codecs(&t, z, a);
	pen__json_open(&t, "attributes", '{');
	put_attrs(&t, at);
	pen__json_close(&t, '}');
	pen__json_open(&t, "storage_transformers", '[');
	pen__json_close(&t, ']');
	pen__json_close(&t, '}');
	return save(z, &t, a->path, "zarr.json", err);
}

int pen__zarr_put_array(struct pen_zarr_write *z, const struct pen_ad_array *a,
			const struct pen_ad_attrs *at, struct pen_err *err)
{
	return pen__zarr_v3(z) ? put_v3(z, a, at, err) : put_v2(z, a, at, err);
}

int pen__zarr_put_all(struct pen_zarr_write *z, struct pen_err *err)
{
	struct pen_text t = { .failed = z->all.failed };

	pen__text_add(&t, "{\"metadata\": {\n");
	pen__text_put(&t, z->all.p, z->all.n);
	pen__text_add(&t, "\n}, \"zarr_consolidated_format\": 1}\n");
	return pen__text_save_in(&t, z->ad.w->tmp, ".zmetadata", false, err);
}
