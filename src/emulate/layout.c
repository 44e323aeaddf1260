/*
 * Names, shapes and sizes of the files of a workload, by the rules of DLIO.
 * Varying sizes come from one sequence of the legacy generator of NumPy, which
 * has no random access: it is stored, 8 bytes per file; nothing is stored if
 * all files are equal. Rejects what DLIO rejects or cannot write: shapes that
 * the format does not support, and records too large for a file.
 */
#include "emulate/layout.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/mem.h"
#include "base/rng.h"
#include "make/synth.h"

#define SIZES_SEED 10 /* value of DLIO */

/* ---- types ---- */

static const struct alias {
	const char *name;
	enum pen_dtype dtype;
} aliases[] = {
	{ "?", PEN_BOOL },
	{ "b1", PEN_BOOL },
	{ "bool_", PEN_BOOL },
	{ "bool8", PEN_BOOL },
	{ "b", PEN_I8 },
	{ "i1", PEN_I8 },
	{ "byte", PEN_I8 },
	{ "B", PEN_U8 },
	{ "u1", PEN_U8 },
	{ "ubyte", PEN_U8 },
	{ "h", PEN_I16 },
	{ "i2", PEN_I16 },
	{ "short", PEN_I16 },
	{ "H", PEN_U16 },
	{ "u2", PEN_U16 },
	{ "ushort", PEN_U16 },
	{ "i", PEN_I32 },
	{ "i4", PEN_I32 },
	{ "intc", PEN_I32 },
	{ "I", PEN_U32 },
	{ "u4", PEN_U32 },
	{ "uintc", PEN_U32 },
	{ "l", PEN_I64 },
	{ "q", PEN_I64 },
	{ "p", PEN_I64 },
	{ "i8", PEN_I64 },
	{ "int", PEN_I64 },
	{ "int_", PEN_I64 },
	{ "intp", PEN_I64 },
	{ "long", PEN_I64 },
	{ "longlong", PEN_I64 },
	{ "L", PEN_U64 },
	{ "Q", PEN_U64 },
	{ "P", PEN_U64 },
	{ "u8", PEN_U64 },
	{ "uint", PEN_U64 },
	{ "uintp", PEN_U64 },
	{ "ulonglong", PEN_U64 },
	{ "e", PEN_F16 },
	{ "f2", PEN_F16 },
	{ "half", PEN_F16 },
	{ "f", PEN_F32 },
	{ "f4", PEN_F32 },
	{ "single", PEN_F32 },
	{ "d", PEN_F64 },
	{ "f8", PEN_F64 },
	{ "float", PEN_F64 },
	{ "float_", PEN_F64 },
	{ "double", PEN_F64 },
	{ "g", PEN_F80 },
	{ "f16", PEN_F80 },
	{ "float128", PEN_F80 },
	{ "longdouble", PEN_F80 },
	{ "longfloat", PEN_F80 },
	{ "F", PEN_C64 },
	{ "c8", PEN_C64 },
	{ "csingle", PEN_C64 },
	{ "D", PEN_C128 },
	{ "c16", PEN_C128 },
	{ "complex", PEN_C128 },
	{ "complex_", PEN_C128 },
	{ "cdouble", PEN_C128 },
	{ "G", PEN_C160 },
	{ "c32", PEN_C160 },
	{ "complex256", PEN_C160 },
	{ "clongdouble", PEN_C160 },
};

static bool find_dtype(const char *name, enum pen_dtype *out)
{
	for (int t = 0; t < PEN_NDTYPES; t++)
		if (!strcmp(name, pen_dtype_name((enum pen_dtype)t))) {
			*out = (enum pen_dtype)t;
			return true;
		}
	for (size_t i = 0; i < sizeof(aliases) / sizeof(*aliases); i++)
		if (!strcmp(name, aliases[i].name)) {
			*out = aliases[i].dtype;
			return true;
		}
	return false;
}

int pen__numpy_dtype(const char *name, const char *key, enum pen_dtype *out,
		     struct pen_err *err)
{
	const char *names[PEN_NDTYPES + 1] = { NULL };
	const char *bare = name, *near;
	bool ordered = *name && strchr("<>=|", *name);

	if (ordered)
		bare++;
	if (find_dtype(bare, out)) {
		if (*name != '>' || pen_dtype_size(*out) == 1)
			return 0;
		return pen__fail(err, P_UNSUPPORTED_FEATURE, key,
				 "'%s': big-endian data cannot be generated; "
				 "remove the '>'",
				 name);
	}
	for (int t = 0; t < PEN_NDTYPES; t++)
		names[t] = pen_dtype_name((enum pen_dtype)t);
	near = pen__nearest(bare, names);
	return pen__fail(
		err, P_UNKNOWN_NAME, key,
		"'%s' is not a NumPy type%s%s; use uint8, int16, float32, ...",
		name, near ? ", did you mean " : "", near ? near : "");
}

/* ---- shapes ---- */

static bool is_image(const struct pen_config *c)
{
	return !strcmp(c->dataset.format, "jpeg") ||
	       !strcmp(c->dataset.format, "png");
}

static int check_dims(struct pen_data_layout *l, struct pen_err *err)
{
	const struct pen_opt_list *d = &l->c->dataset.record_dims;
	const uint64_t parts = l->c->dataset.hdf5_num_dset;

	/* the sample axis is added */
	if (d->n >= PEN_MAX_DIMS)
		return pen__fail(err, P_BAD_VALUE, "dataset.record_dims",
				 "%zu axes exceed the limit of %d", d->n,
				 PEN_MAX_DIMS - 1);
	if (is_image(l->c) && d->n != 2)
		return pen__fail(err, P_CONFLICT, "dataset.record_dims",
				 "%s format does not support %s than 2 "
				 "dimensions, but got %zu dimensions",
				 l->c->dataset.format,
				 d->n > 2 ? "more" : "less", d->n);
	if (l->c->dataset.record_length_stdev > 0)
		return pen__fail(err, P_CONFLICT,
				 "dataset.record_length_bytes_stdev",
				 "cannot be combined with record_dims; set "
				 "record_length_bytes instead of record_dims");
	for (size_t i = 0; i < d->n; i++) {
		if (d->v[i] < 1)
			return pen__fail(
				err, P_BAD_VALUE, "dataset.record_dims",
				"axis %zu is %" PRId64 "; use at least 1", i,
				d->v[i]);
		l->dims[i] = d->v[i];
	}
	l->ndim = (uint32_t)d->n;
	if (parts > 1 && d->v[0] % (int64_t)parts)
		return pen__fail(err, P_CONFLICT,
				 "dataset.hdf5.num_dset_per_record",
				 "record_dims[0] = %" PRId64
				 " is not divisible by %" PRIu64,
				 d->v[0], parts);
	return 0;
}

/* max(int(v), 1); false if it is too large. */
static bool to_side(double v, int32_t *out)
{
	if (!(v < (double)INT32_MAX))
		return false;
	*out = v < 2 ? 1 : (int32_t)v;
	return true;
}

static int draw_sides(struct pen_data_layout *l, double mean, double sd,
		      struct pen_err *err)
{
	struct pen_legacy r;

	l->sides = pen__alloc((size_t)l->nfiles, 2 * sizeof(*l->sides));
	if (!l->sides)
		return pen__fail_nomem(err, "dataset", (size_t)l->nfiles * 8);
	pen__legacy_seed(&r, SIZES_SEED);
	for (uint64_t i = 0; i < 2 * l->nfiles; i++)
		if (!to_side(pen__legacy_normal(&r, mean, sd), &l->sides[i]))
			return pen__fail(
				err, P_BAD_VALUE,
				"dataset.record_length_bytes_stdev",
				"file %" PRIu64
				" would exceed the largest possible file",
				i / 2);
	return 0;
}

static int square(struct pen_data_layout *l, struct pen_err *err)
{
	const double n = l->c->dataset.record_length;
	const double sd = l->c->dataset.record_length_stdev / 2.0 / sqrt(n);
	const double side = floor(sqrt(n));
	int32_t one;

	if (!(n >= 1) || !to_side(side, &one))
		return pen__fail(
			err, P_BAD_VALUE, "dataset.record_length_bytes",
			"out of range; use at least 1 and less than 4e18");
	if (l->c->dataset.hdf5_num_dset > 1 &&
	    !strcmp(l->c->dataset.format, "hdf5"))
		return pen__fail(err, P_MISSING_SETTING,
				 "dataset.hdf5.num_dset_per_record",
				 "splits record_dims, which is not set; set "
				 "record_dims");
	l->ndim = 2;
	l->dims[0] = l->dims[1] = one;
	return sd > 0 && l->nfiles ? draw_sides(l, side, sd, err) : 0;
}

/* Checks that the payload of each file, and of all files, fits in 64 bits. */
static int check_bytes(const struct pen_data_layout *l, struct pen_err *err)
{
	uint64_t sum = 0, file;
	int64_t shape[PEN_MAX_DIMS];
	size_t row;

	for (uint64_t i = 0; i < (l->sides ? l->nfiles : !!l->nfiles); i++) {
		uint32_t n = pen__layout_shape(l, i, shape);

		if (!pen__shape_bytes(shape, n, l->dtype, &row) ||
		    __builtin_mul_overflow(row, l->nsamples, &file) ||
		    file > INT64_MAX / 2 ||
		    __builtin_add_overflow(sum, file, &sum))
			return pen__fail(
				err, P_BAD_VALUE, "dataset",
				"file %" PRIu64
				" would exceed the largest possible file",
				i);
	}
	if (!l->sides && __builtin_mul_overflow(sum, l->nfiles, &sum))
		return pen__fail(err, P_BAD_VALUE, "dataset",
				 "the total size exceeds 2^64 bytes");
	return 0;
}

/* ---- names ---- */

/* os.path.join(storage_root, data_folder): an absolute data_folder replaces the
 * root. */
static int join_root(struct pen_data_layout *l, struct pen_err *err)
{
	const char *root = l->c->storage.root ? l->c->storage.root : "";
	const char *folder =
		l->c->dataset.data_folder ? l->c->dataset.data_folder : "";
	const char *prefix = l->c->dataset.file_prefix;
	size_t n = strlen(root);
	int k;

	while (n > 1 && root[n - 1] == '/')
		n--;
	if (*folder == '/' || !n || (n == 1 && *root == '.'))
		k = snprintf(l->root, sizeof(l->root), "%s",
			     *folder ? folder : ".");
	else
		k = snprintf(l->root, sizeof(l->root), "%.*s%s%s", (int)n, root,
			     *folder && root[n - 1] != '/' ? "/" : "", folder);
	/* room for file names */
	if (k < 0 ||
	    (size_t)k + (prefix ? strlen(prefix) : 0) + 160 >= sizeof(l->root))
		return pen__fail(err, P_TOO_LONG, "dataset.data_folder",
				 "the path is too long");
	for (; k > 1 && l->root[k - 1] == '/'; k--)
		l->root[k - 1] = '\0';
	if (prefix && strchr(prefix, '/'))
		return pen__fail(err, P_BAD_VALUE, "dataset.file_prefix",
				 "'%s' contains a slash; a file name cannot",
				 prefix);
	return 0;
}

void pen__layout_dir(const struct pen_data_layout *l, enum pen_split s,
		     char *buf, size_t cap)
{
	snprintf(buf, cap, "%s%s%s", l->root, !strcmp(l->root, "/") ? "" : "/",
		 s == PEN_TRAIN ? "train" : "valid");
}

uint64_t pen__layout_nsubfolders(const struct pen_data_layout *l,
				 enum pen_split s)
{
	const uint64_t n = s == PEN_TRAIN ? l->c->dataset.num_subfolders_train
					  : l->c->dataset.num_subfolders_eval;

	return n > 1 ? n : 0;
}

static void names_of(const struct pen_data_layout *l, enum pen_split s,
		     const char *dir, struct pen_synth_names *out)
{
	const char *prefix = l->c->dataset.file_prefix;

	*out = (struct pen_synth_names){
		.dir = dir,
		.prefix = prefix ? prefix : "",
		.files = s == PEN_TRAIN ? l->c->dataset.num_files_train
					: l->c->dataset.num_files_eval,
		.subfolders = pen__layout_nsubfolders(l, s),
	};
}

void pen__layout_subfolder(const struct pen_data_layout *l, enum pen_split s,
			   uint64_t k, char *buf, size_t cap)
{
	struct pen_synth_names names;
	char dir[PEN_LAYOUT_PATH], sub[32];

	pen__layout_dir(l, s, dir, sizeof(dir));
	names_of(l, s, dir, &names);
	pen__synth_subfolder(&names, k, sub);
	snprintf(buf, cap, "%s/%s", dir, sub);
}

void pen__layout_path(const struct pen_data_layout *l, uint64_t i, char *buf,
		      size_t cap)
{
	const enum pen_split s = pen__layout_split(l, i);
	struct pen_synth_names names;
	char dir[PEN_LAYOUT_PATH], suffix[64];

	pen__layout_dir(l, s, dir, sizeof(dir));
	names_of(l, s, dir, &names);
	snprintf(suffix, sizeof(suffix), ".%s", l->c->dataset.format);
	names.suffix = suffix;
	pen__synth_name(&names,
			s == PEN_TRAIN ? i : i - l->c->dataset.num_files_train,
			buf, cap);
}

void pen__layout_index_path(const struct pen_data_layout *l, uint64_t i,
			    char *buf, size_t cap)
{
	char path[PEN_LAYOUT_PATH];

	buf[0] = '\0';
	if (strcmp(l->c->dataset.format, "tfrecord") != 0)
		return;
	pen__layout_path(l, i, path, sizeof(path));
	snprintf(buf, cap, "%s/index/%s%s.idx", l->root,
		 pen__layout_split(l, i) == PEN_TRAIN ? "train" : "valid",
		 strrchr(path, '/'));
}

/* ---- layout ---- */

int pen__layout_init(struct pen_data_layout *l, const struct pen_config *c,
		     struct pen_err *err)
{
	const char *type = c->dataset.record_element_type;
	int rc;

	*l = (struct pen_data_layout){ .c = c };
	if (!c->dataset.format || !pen_help_of("format", c->dataset.format))
		return pen__fail(err, P_UNKNOWN_NAME, "dataset.format",
				 "unknown format '%s'; see `penstock formats`",
				 c->dataset.format ? c->dataset.format : "");
	if (__builtin_add_overflow(c->dataset.num_files_train,
				   c->dataset.num_files_eval, &l->nfiles) ||
	    l->nfiles > INT64_MAX / 16)
		return pen__fail(err, P_BAD_VALUE, "dataset.num_files_train",
				 "the number of files is too large");
	l->nsamples = is_image(c) ? 1 : c->dataset.num_samples_per_file;
	if (!l->nsamples)
		return pen__fail(err, P_BAD_VALUE,
				 "dataset.num_samples_per_file",
				 "is 0; use at least 1");
	/* images are always bytes */
	rc = pen__numpy_dtype(type && !is_image(c) ? type : "uint8",
			      "dataset.record_element_type", &l->dtype, err);
	if (!rc)
		rc = join_root(l, err);
	if (!rc)
		rc = c->dataset.record_dims.n ? check_dims(l, err)
					      : square(l, err);
	if (!rc)
		rc = check_bytes(l, err);
	if (rc)
		pen__layout_fini(l);
	return rc;
}

void pen__layout_fini(struct pen_data_layout *l)
{
	pen__free(l->sides);
	l->sides = NULL;
}

uint32_t pen__layout_shape(const struct pen_data_layout *l, uint64_t i,
			   int64_t *shape)
{
	if (l->sides) {
		shape[0] = l->sides[2 * i];
		shape[1] = l->sides[2 * i + 1];
	} else {
		memcpy(shape, l->dims, l->ndim * sizeof(*shape));
	}
	return l->ndim;
}

uint64_t pen__layout_bytes(const struct pen_data_layout *l, uint64_t i)
{
	int64_t shape[PEN_MAX_DIMS] = { 0 };
	const uint32_t n = pen__layout_shape(l, i, shape);
	uint64_t bytes = pen_dtype_size(l->dtype) * l->nsamples;

	for (uint32_t k = 0; k < n; k++) /* cannot overflow: checked by init */
		bytes *= (uint64_t)shape[k];
	return bytes;
}

uint64_t pen__layout_total(const struct pen_data_layout *l, enum pen_split s)
{
	const uint64_t first = s == PEN_TRAIN ? 0
					      : l->c->dataset.num_files_train;
	const uint64_t end = s == PEN_TRAIN ? l->c->dataset.num_files_train
					    : l->nfiles;
	uint64_t sum = 0;

	if (!l->sides)
		return first < end ? (end - first) * pen__layout_bytes(l, first)
				   : 0;
	for (uint64_t i = first; i < end; i++)
		sum += pen__layout_bytes(l, i);
	return sum;
}
