/*
 * Nodes of a zarr store and their metadata: .zgroup, .zarray and .zattrs of
 * version 2, zarr.json of version 3. .zmetadata, which repeats them, is
 * ignored. Refuses unsupported types and codecs by name.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/half.h"
#include "base/quote.h"
#include "format/cells/zarr.h"

#define MOST_DOC ((uint64_t)16 << 20) /* bytes of a document */

/* ---- nodes ---- */

/* 1 with the document, 0 if it does not exist. */
static int load_doc(const struct pen_zarr *z, const char *path,
		    const char *name, struct pen_jdoc *j, struct pen_err *err)
{
	char key[PEN_ZARR_PATH + 16], where[256];
	struct pen_zarr_part part;
	struct pen_buf b;
	int rc;

	snprintf(key, sizeof(key), "%s%s%s", path, *path ? "/" : "", name);
	if (!pen__zarr_find(z, key, &part))
		return 0;
	rc = pen__zarr_load(z, &part, key, MOST_DOC, &b, err);
	if (rc < 0)
		return rc;
	pen__zarr_where(z, key, where, sizeof(where));
	rc = pen__jdoc_open(j, b.p, b.n, where, err);
	pen__buf_fini(&b);
	if (rc >= 0 && pen__jdoc_type(j, 0) != PEN_JDOC_OBJECT)
		rc = pen__fail(err, P_BAD_TEXT, where, "not a JSON object");
	return rc < 0 ? rc : 1;
}

static int open_v2(const struct pen_zarr *z, struct pen_zarr_node *node,
		   struct pen_err *err)
{
	char key[PEN_ZARR_PATH + 16];
	struct pen_zarr_part part;
	int rc = load_doc(z, node->path, ".zarray", &node->meta, err);

	if (rc < 0)
		return rc;
	if (!rc) {
		snprintf(key, sizeof(key), "%s%s.zgroup", node->path,
			 *node->path ? "/" : "");
		if (!pen__zarr_find(z, key, &part))
			return 0;
		node->group = true;
	}
	rc = load_doc(z, node->path, ".zattrs", &node->own, err);
	return rc < 0 ? rc : 1;
}

static int open_v3(const struct pen_zarr *z, struct pen_zarr_node *node,
		   struct pen_err *err)
{
	char where[256];
	uint32_t type;
	int rc = load_doc(z, node->path, "zarr.json", &node->meta, err);

	if (rc <= 0)
		return rc;
	type = pen__jdoc_get(&node->meta, 0, "node_type");
	node->group = pen__jdoc_is(&node->meta, type, "group");
	if (node->group || pen__jdoc_is(&node->meta, type, "array"))
		return 1;
	pen__zarr_where(z, node->path, where, sizeof(where));
	return pen__fail(
		err, P_DAMAGED, where,
		"the node_type in zarr.json is neither 'group' nor 'array'");
}

int pen__zarr_node_open(const struct pen_zarr *z, const char *path,
			struct pen_zarr_node *node, struct pen_err *err)
{
	char where[256];

	*node = (struct pen_zarr_node){ 0 };
	if (strcmp(path, ".") == 0)
		path = "";
	if (strlen(path) >= sizeof(node->path)) {
		pen__zarr_where(z, path, where, sizeof(where));
		return pen__fail(err, P_OVER_LIMIT, where,
				 "the path is too long");
	}
	memcpy(node->path, path, strlen(path) + 1);
	return z->version == 3 ? open_v3(z, node, err) : open_v2(z, node, err);
}

void pen__zarr_node_close(struct pen_zarr_node *node)
{
	pen__jdoc_close(&node->meta);
	pen__jdoc_close(&node->own);
}

uint32_t pen__zarr_attr(const struct pen_zarr_node *node, const char *name,
			const struct pen_jdoc **j)
{
	uint32_t in = pen__jdoc_get(&node->meta, 0, "attributes");

	*j = &node->meta;
	if (node->own.n) {
		*j = &node->own;
		in = 0;
	}
	return in == PEN_JDOC_NONE ? in : pen__jdoc_get(*j, in, name);
}

/* ---- arrays ---- */

/* An array while its document is parsed. */
struct reading {
	const struct pen_jdoc *j;
	struct pen_zarr_array *a;
	char where[256];
	struct pen_err *err;
};

/* v: the value found instead, if any. */
static int bad(const struct reading *r, const char *what, uint32_t v)
{
	const char *text = pen__jdoc_text(r->j, v);
	char found[128] = "nothing";
	double x;

	if (text)
		snprintf(found, sizeof(found), "%s",
			 pen__quoted(text, strlen(text)).s);
	else if (pen__jdoc_number(r->j, v, &x))
		snprintf(found, sizeof(found), "%.17g", x);
	else if (pen__jdoc_type(r->j, v) == PEN_JDOC_LIST)
		snprintf(found, sizeof(found), "a list of %" PRIu32,
			 pen__jdoc_count(r->j, v));
	else if (v != PEN_JDOC_NONE)
		snprintf(found, sizeof(found), "something else");
	return pen__fail(r->err, P_DAMAGED, r->where,
			 "damaged: invalid %s in the metadata (found %s)", what,
			 found);
}

static int take_dims(const struct reading *r, uint32_t list, const char *what,
		     uint64_t *dim, uint32_t *ndim)
{
	const uint32_t n = pen__jdoc_count(r->j, list);
	uint32_t v = pen__jdoc_first(r->j, list);

	if (pen__jdoc_type(r->j, list) != PEN_JDOC_LIST)
		return bad(r, what, list);
	if (n > PEN_MAX_DIMS)
		return pen__fail(r->err, P_OVER_LIMIT, r->where,
				 "has %" PRIu32
				 " axes; at most %d are supported",
				 n, PEN_MAX_DIMS);
	*ndim = n;
	for (uint32_t i = 0; i < n; i++, v = pen__jdoc_next(r->j, v))
		if (!pen__jdoc_count_of(r->j, v, &dim[i]))
			return bad(r, what, v);
	return 0;
}

static int dtype_of(char kind, unsigned size)
{
	static const struct {
		char kind;
		uint8_t size, dtype;
	} known[] = {
		{ 'b', 1, PEN_BOOL }, { 'i', 1, PEN_I8 },  { 'i', 2, PEN_I16 },
		{ 'i', 4, PEN_I32 },  { 'i', 8, PEN_I64 }, { 'u', 1, PEN_U8 },
		{ 'u', 2, PEN_U16 },  { 'u', 4, PEN_U32 }, { 'u', 8, PEN_U64 },
		{ 'f', 2, PEN_F16 },  { 'f', 4, PEN_F32 }, { 'f', 8, PEN_F64 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].kind == kind && known[i].size == size)
			return known[i].dtype;
	return -1;
}

/* "<f4" */
static void take_v2_type(const struct reading *r)
{
	const char *s = pen__jdoc_text(r->j, pen__jdoc_get(r->j, 0, "dtype"));
	struct pen_zarr_array *a = r->a;
	unsigned long size;
	char *end;

	a->text = PEN_ZARR_OTHER;
	snprintf(a->type_name, sizeof(a->type_name), "%.40s",
		 s ? s : "structures");
	if (!s || !s[0] || !strchr("<>|=", s[0]) || !s[1])
		return;
	size = s[2] >= '0' && s[2] <= '9' ? strtoul(s + 2, &end, 10) : 0;
	if (size && *end)
		return; /* <M8[ns] */
	a->swap = s[0] == '>' && size > 1;
	if (s[1] == 'O') {
		a->text = PEN_ZARR_VLEN; /* if a filter confirms it */
	} else if (size && size < 1u << 20 && (s[1] == 'U' || s[1] == 'S')) {
		a->text = s[1] == 'U' ? PEN_ZARR_UTF32 : PEN_ZARR_BYTES;
		a->item = size * (s[1] == 'U' ? 4 : 1);
		a->swap = s[0] == '>' && s[1] == 'U';
	} else if (size <= 8) {
		a->dtype = dtype_of(s[1], (unsigned)size);
		a->item = size;
		if (a->dtype >= 0)
			a->text = PEN_ZARR_NUMBERS;
	}
}

/* "float32", or a name with its configuration */
static void take_v3_type(const struct reading *r)
{
	uint32_t v = pen__jdoc_get(r->j, 0, "data_type"), conf;
	struct pen_zarr_array *a = r->a;
	const char *s;
	uint64_t size = 0;

	conf = pen__jdoc_get(r->j, v, "configuration");
	if (pen__jdoc_type(r->j, v) == PEN_JDOC_OBJECT)
		v = pen__jdoc_get(r->j, v, "name");
	s = pen__jdoc_text(r->j, v);
	a->text = PEN_ZARR_OTHER;
	snprintf(a->type_name, sizeof(a->type_name), "%.40s",
		 s ? s : "structures");
	if (!s)
		return;
	(void)pen__jdoc_count_of(
		r->j, pen__jdoc_get(r->j, conf, "length_bytes"), &size);
	if (strcmp(s, "string") == 0) {
		a->text = PEN_ZARR_VLEN;
	} else if (size && size < 1u << 20 &&
		   (strcmp(s, "fixed_length_utf32") == 0 ||
		    strcmp(s, "null_terminated_bytes") == 0)) {
		a->text = s[0] == 'f' ? PEN_ZARR_UTF32 : PEN_ZARR_BYTES;
		a->item = (size_t)size;
		if (s[0] == 'f' && size % 4)
			a->text = PEN_ZARR_OTHER;
	}
	for (int t = PEN_BOOL; t <= PEN_F64; t++)
		if (strcmp(s, pen_dtype_name((enum pen_dtype)t)) == 0) {
			a->dtype = t;
			a->item = pen_dtype_size((enum pen_dtype)t);
			a->text = PEN_ZARR_NUMBERS;
		}
}

/* ---- fill values ---- */

static void store_float(enum pen_dtype t, double v, uint8_t to[8])
{
	uint16_t h;
	float s;

	switch (t) {
	case PEN_F64:
		memcpy(to, &v, 8);
		return;
	case PEN_F32:
		s = (float)v;
		memcpy(to, &s, 4);
		return;
	case PEN_F16:
		h = pen__double_to_half(v);
		memcpy(to, &h, 2);
		return;
	default:
		return;
	}
}

/* False if the type cannot represent the number. Exact for all digits: many
 * stores use the largest integers as "missing", which a double cannot
 * represent. */
static bool store_integer(enum pen_dtype t, uint64_t amount, bool minus,
			  uint8_t to[8])
{
	static const bool with_sign[] = {
		[PEN_I8] = true,  [PEN_I16] = true,  [PEN_I32] = true,
		[PEN_I64] = true, [PEN_U64] = false,
	};
	const size_t n = pen_dtype_size(t);
	uint64_t most = UINT64_MAX >> (64 - 8 * n);

	if (t == PEN_BOOL)
		amount = amount > 0;
	if (with_sign[t])
		most = most / 2 + minus;
	else if (minus)
		most = 0;
	if (amount > most)
		return false;
	/* two's complement: the low bytes are right for any width */
	amount = minus ? -amount : amount;
	memcpy(to, &amount, n);
	return true;
}

static int take_fill(const struct reading *r)
{
	const uint32_t v = pen__jdoc_get(r->j, 0, "fill_value");
	const char *s = pen__jdoc_text(r->j, v);
	struct pen_zarr_array *a = r->a;
	uint64_t bits = 0;
	bool minus = false;
	double x = 0;
	char *end;

	if (a->text != PEN_ZARR_NUMBERS)
		return 0; /* absent strings are empty */
	if (s && strncmp(s, "0x", 2) == 0) {
		bits = strtoull(s + 2, &end, 16);
		if (*end)
			return bad(r, "fill_value", v);
		memcpy(a->fill, &bits, a->item);
		return 0;
	}
	if (s && strcmp(s, "NaN") == 0)
		x = (double)NAN;
	else if (s && strcmp(s, "Infinity") == 0)
		x = (double)INFINITY;
	else if (s && strcmp(s, "-Infinity") == 0)
		x = -(double)INFINITY;
	else if (pen__jdoc_type(r->j, v) == PEN_JDOC_TRUE)
		x = 1;
	else if (pen__jdoc_type(r->j, v) != PEN_JDOC_NULL &&
		 pen__jdoc_type(r->j, v) != PEN_JDOC_FALSE &&
		 !pen__jdoc_number(r->j, v, &x))
		return bad(r, "fill_value", v);
	if (a->dtype >= PEN_F16) {
		store_float((enum pen_dtype)a->dtype, x, a->fill);
		return 0;
	}
	if (pen__jdoc_type(r->j, v) == PEN_JDOC_TRUE)
		bits = 1;
	if ((s || (pen__jdoc_type(r->j, v) == PEN_JDOC_NUMBER &&
		   !pen__jdoc_integer(r->j, v, &bits, &minus))) ||
	    !store_integer((enum pen_dtype)a->dtype, bits, minus, a->fill))
		return bad(r, "fill_value", v);
	return 0;
}

/* ---- how chunks are stored ---- */

static int add_step(const struct reading *r, const char *name, uint32_t conf)
{
	uint64_t item = r->a->item ? r->a->item : 1;
	const uint32_t v = pen__jdoc_get(r->j, conf, "elementsize");

	if (!name)
		return bad(r, "codec", PEN_JDOC_NONE);
	if (strncmp(name, "numcodecs.", 10) == 0)
		name += 10;
	if (v != PEN_JDOC_NONE &&
	    (!pen__jdoc_count_of(r->j, v, &item) || item > UINT32_MAX))
		return bad(r, "elementsize", v);
	/* leave room for the archive's filter: see zarr_chunks.c */
	if (r->a->filters.n == PEN_FILTERS - 1)
		return pen__fail(r->err, P_OVER_LIMIT, r->where,
				 "too many filters");
	if (strcmp(name, "inflate") == 0)
		name = "an unknown codec"; /* only valid for an archive */
	return pen__filters_add(&r->a->filters, name, (uint32_t)item, r->where,
				r->err);
}

static int take_v2_codecs(const struct reading *r)
{
	uint32_t list = pen__jdoc_get(r->j, 0, "filters");
	uint32_t v = pen__jdoc_first(r->j, list);
	struct pen_zarr_array *a = r->a;
	bool vlen = false;
	int rc = 0;

	for (; rc >= 0 && v != PEN_JDOC_NONE; v = pen__jdoc_next(r->j, v)) {
		const char *id =
			pen__jdoc_text(r->j, pen__jdoc_get(r->j, v, "id"));

		if (id && strcmp(id, "vlen-utf8") == 0 && !a->filters.n &&
		    a->text == PEN_ZARR_VLEN)
			vlen = true;
		else
			rc = add_step(r, id, v);
	}
	v = pen__jdoc_get(r->j, 0, "compressor");
	if (rc >= 0 && pen__jdoc_type(r->j, v) != PEN_JDOC_NULL)
		rc = add_step(
			r, pen__jdoc_text(r->j, pen__jdoc_get(r->j, v, "id")),
			v);
	if (rc >= 0 && a->text == PEN_ZARR_VLEN && !vlen)
		return pen__fail(r->err, P_UNSUPPORTED_TYPE, r->where,
				 "contains objects that are not stored as text "
				 "(vlen-utf8)");
	return rc;
}

static int take_v2(const struct reading *r)
{
	const uint32_t sep = pen__jdoc_get(r->j, 0, "dimension_separator");
	const uint32_t order = pen__jdoc_get(r->j, 0, "order");
	struct pen_zarr_array *a = r->a;
	uint32_t n, wide = 0;
	int rc;

	take_v2_type(r);
	rc = take_dims(r, pen__jdoc_get(r->j, 0, "shape"), "shape", a->dim,
		       &a->ndim);
	if (rc >= 0)
		rc = take_dims(r, pen__jdoc_get(r->j, 0, "chunks"), "chunks",
			       a->chunk, &n);
	if (rc < 0)
		return rc;
	if (n != a->ndim)
		return bad(r, "chunks", pen__jdoc_get(r->j, 0, "chunks"));
	memcpy(a->file, a->chunk, sizeof(a->file));
	a->separator = pen__jdoc_is(r->j, sep, "/") ? '/' : '.';
	if (sep != PEN_JDOC_NONE && a->separator == '.' &&
	    !pen__jdoc_is(r->j, sep, "."))
		return bad(r, "dimension_separator", sep);
	/* with at most one axis longer than 1, both orders are the same */
	for (uint32_t i = 0; i < n; i++)
		wide += a->chunk[i] > 1;
	a->fortran = wide > 1 && !pen__jdoc_is(r->j, order, "C");
	if (a->fortran && !pen__jdoc_is(r->j, order, "F"))
		return bad(r, "order", order);
	rc = take_fill(r);
	return rc < 0 ? rc : take_v2_codecs(r);
}

/* ---- version 3 ---- */

static uint32_t conf_of(const struct reading *r, uint32_t v)
{
	return pen__jdoc_get(r->j, v, "configuration");
}

/* Codecs and similar entries are objects with a name, or just the name. */
static const char *name_of(const struct reading *r, uint32_t v)
{
	if (pen__jdoc_type(r->j, v) == PEN_JDOC_OBJECT)
		v = pen__jdoc_get(r->j, v, "name");
	return pen__jdoc_text(r->j, v);
}

static int take_keys(const struct reading *r)
{
	const uint32_t v = pen__jdoc_get(r->j, 0, "chunk_key_encoding");
	const uint32_t sep = pen__jdoc_get(r->j, conf_of(r, v), "separator");
	const char *name = name_of(r, v), *s = pen__jdoc_text(r->j, sep);
	struct pen_zarr_array *a = r->a;

	a->under_c = name && strcmp(name, "default") == 0;
	if (!name || (!a->under_c && strcmp(name, "v2") != 0))
		return bad(r, "chunk_key_encoding",
			   name ? pen__jdoc_get(r->j, v, "name") : v);
	a->separator = a->under_c ? '/' : '.';
	if (sep == PEN_JDOC_NONE)
		return 0;
	if (!s || (strcmp(s, "/") != 0 && strcmp(s, ".") != 0))
		return bad(r, "separator", sep);
	a->separator = s[0];
	return 0;
}

static int take_grid(const struct reading *r)
{
	const uint32_t v = pen__jdoc_get(r->j, 0, "chunk_grid");
	const char *name = name_of(r, v);
	struct pen_zarr_array *a = r->a;
	uint32_t n, shape;
	int rc;

	if (!name || strcmp(name, "regular") != 0)
		return pen__fail(r->err, P_UNSUPPORTED_FEATURE, r->where,
				 "chunks of different sizes are not supported "
				 "(chunk_grid '%.40s')",
				 name ? name : "unknown");
	shape = pen__jdoc_get(r->j, conf_of(r, v), "chunk_shape");
	rc = take_dims(r, shape, "chunk_shape", a->file, &n);
	if (rc >= 0 && n != a->ndim)
		rc = bad(r, "chunk_shape", shape);
	memcpy(a->chunk, a->file, sizeof(a->chunk));
	return rc;
}

static int take_codecs(const struct reading *r, uint32_t list, bool inner);

static int take_index_codecs(const struct reading *r, uint32_t list)
{
	uint32_t v = pen__jdoc_first(r->j, list);

	for (; v != PEN_JDOC_NONE; v = pen__jdoc_next(r->j, v)) {
		const char *name = name_of(r, v);
		const uint32_t e = pen__jdoc_get(r->j, conf_of(r, v), "endian");

		if (name && strcmp(name, "crc32c") == 0)
			r->a->index_crc = true;
		else if (!name || strcmp(name, "bytes") != 0 ||
			 (e != PEN_JDOC_NONE &&
			  !pen__jdoc_is(r->j, e, "little")))
			return pen__fail(
				r->err, P_UNSUPPORTED_FEATURE, r->where,
				"the shard index is encoded as %.40s; only "
				"little-endian bytes and crc32c are supported",
				name ? name : "an unknown codec");
	}
	return 0;
}

static int take_sharding(const struct reading *r, uint32_t v)
{
	const uint32_t conf = conf_of(r, v);
	const uint32_t at = pen__jdoc_get(r->j, conf, "index_location");
	const uint32_t shape = pen__jdoc_get(r->j, conf, "chunk_shape");
	struct pen_zarr_array *a = r->a;
	uint32_t n = 0;
	int rc = take_dims(r, shape, "chunk_shape", a->chunk, &n);

	if (rc < 0)
		return rc;
	if (n != a->ndim)
		return bad(r, "chunk_shape", shape);
	for (uint32_t i = 0; i < n; i++)
		if (!a->chunk[i] || a->file[i] % a->chunk[i])
			return pen__fail(r->err, P_DAMAGED, r->where,
					 "damaged: shards of %" PRIu64
					 " elements are not a multiple of "
					 "chunks of %" PRIu64 " (chunk_shape)",
					 a->file[i], a->chunk[i]);
	a->sharded = true;
	a->index_first = pen__jdoc_is(r->j, at, "start");
	if (at != PEN_JDOC_NONE && !a->index_first &&
	    !pen__jdoc_is(r->j, at, "end"))
		return bad(r, "index_location", at);
	rc = take_index_codecs(r, pen__jdoc_get(r->j, conf, "index_codecs"));
	return rc < 0 ? rc
		      : take_codecs(r, pen__jdoc_get(r->j, conf, "codecs"),
				    true);
}

/* Whether this codec serialises an array; false: it is another kind. */
static bool takes_bytes(const struct reading *r, uint32_t v, const char *name)
{
	const uint32_t e = pen__jdoc_get(r->j, conf_of(r, v), "endian");

	if (strcmp(name, "vlen-utf8") == 0)
		return r->a->text == PEN_ZARR_VLEN;
	if (strcmp(name, "bytes") != 0 || r->a->text == PEN_ZARR_VLEN)
		return false;
	r->a->swap = r->a->item > 1 && r->a->text != PEN_ZARR_BYTES &&
		     pen__jdoc_is(r->j, e, "big");
	return true;
}

static int take_codecs(const struct reading *r, uint32_t list, bool inner)
{
	uint32_t v = pen__jdoc_first(r->j, list);
	bool bytes = false;
	int rc = 0;

	for (; rc >= 0 && v != PEN_JDOC_NONE; v = pen__jdoc_next(r->j, v)) {
		const char *name = name_of(r, v);

		if (!name)
			return bad(r, "codecs", v);
		if (bytes) {
			if (r->a->sharded && !inner)
				return pen__fail(
					r->err, P_UNSUPPORTED_FEATURE, r->where,
					"shards compressed as a whole (%.40s) "
					"are not supported; compress the "
					"chunks inside them",
					name);
			rc = add_step(r, name, conf_of(r, v));
			continue;
		}
		bytes = true;
		if (strcmp(name, "sharding_indexed") == 0 && !inner)
			rc = take_sharding(r, v);
		else if (!takes_bytes(r, v, name))
			return pen__fail(
				r->err, P_UNSUPPORTED_FEATURE, r->where,
				"the codec %.40s is not supported for %s; "
				"bytes, vlen-utf8 and sharding_indexed are",
				name, r->a->type_name);
	}
	return rc < 0 || bytes ? rc : bad(r, "codecs", list);
}

static int take_v3(const struct reading *r)
{
	int rc;

	take_v3_type(r);
	rc = take_dims(r, pen__jdoc_get(r->j, 0, "shape"), "shape", r->a->dim,
		       &r->a->ndim);
	if (rc >= 0 &&
	    pen__jdoc_count(r->j,
			    pen__jdoc_get(r->j, 0, "storage_transformers")))
		rc = pen__fail(r->err, P_UNSUPPORTED_FEATURE, r->where,
			       "storage transformers are not supported");
	if (rc >= 0)
		rc = take_grid(r);
	if (rc >= 0)
		rc = take_keys(r);
	if (rc >= 0)
		rc = take_fill(r);
	if (rc >= 0 && r->a->text != PEN_ZARR_OTHER)
		rc = take_codecs(r, pen__jdoc_get(r->j, 0, "codecs"), false);
	return rc;
}

/* ---- both versions ---- */

static int check_sizes(const struct reading *r)
{
	struct pen_zarr_array *a = r->a;
	uint64_t n = a->item ? a->item : 1;

	for (uint32_t i = 0; i < a->ndim; i++) {
		/* an axis of length 0 may have chunks of length 0 */
		if (!a->dim[i] && !a->chunk[i])
			a->chunk[i] = a->file[i] = 1;
		if (!a->chunk[i] || !a->file[i])
			return pen__fail(
				r->err, P_DAMAGED, r->where,
				"damaged: the chunk shape contains a 0");
		if (a->dim[i] > (uint64_t)1 << 52)
			return pen__fail(
				r->err, P_DAMAGED, r->where,
				"damaged: an axis has %" PRIu64
				" elements, more than any file can contain",
				a->dim[i]);
		if (a->chunk[i] > UINT32_MAX / n)
			return pen__fail(r->err, P_OVER_LIMIT, r->where,
					 "chunks of 4 GiB or more are not "
					 "supported; store it in smaller ones");
		n *= a->chunk[i];
	}
	a->chunk_bytes = a->item ? n : 0;
	return 0;
}

int pen__zarr_array(const struct pen_zarr *z, const struct pen_zarr_node *node,
		    struct pen_zarr_array *a, struct pen_err *err)
{
	struct reading r = { .j = &node->meta, .a = a, .err = err };
	int rc;

	*a = (struct pen_zarr_array){ .dtype = -1 };
	pen__zarr_where(z, node->path, r.where, sizeof(r.where));
	if (node->group)
		return pen__fail(err, P_DAMAGED, r.where,
				 "a group; expected an array");
	rc = z->version == 3 ? take_v3(&r) : take_v2(&r);
	return rc < 0 ? rc : check_sizes(&r);
}
