/*
 * Names, shapes and sizes of a workload's files, by DLIO's rules. Sizes that
 * vary come from one sequence of NumPy's legacy generator, which can only be
 * gone through from its start: it is kept, 8 bytes a file, and nothing is when
 * all files are alike. Refuses what DLIO refuses or cannot write: shapes the
 * format does not take, and records too large for any file.
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

#define SIZES_SEED 10 /* DLIO's */

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
		return pen__fail(err, PEN_ENOTSUP, key,
				 "%s: data of the other byte order is not "
				 "made; leave out the >",
				 name);
	}
	for (int t = 0; t < PEN_NDTYPES; t++)
		names[t] = pen_dtype_name((enum pen_dtype)t);
	near = pen__nearest(bare, names);
	return pen__fail(err, PEN_EINVAL, key,
			 "%s is not a type NumPy has%s%s; write uint8, int16, "
			 "float32, ...",
			 name, near ? ": did you mean " : "", near ? near : "");
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

	/* one more axis counts the samples */
	if (d->n >= PEN_MAX_DIMS)
		return pen__fail(err, PEN_EINVAL, "dataset.record_dims",
				 "has %zu axes, at most %d", d->n,
				 PEN_MAX_DIMS - 1);
	if (is_image(l->c) && d->n != 2)
		return pen__fail(err, PEN_EINVAL, "dataset.record_dims",
				 "%s format does not support %s than 2 "
				 "dimensions, but got %zu dimensions",
				 l->c->dataset.format,
				 d->n > 2 ? "more" : "less", d->n);
	if (l->c->dataset.record_length_stdev > 0)
		return pen__fail(err, PEN_EINVAL,
				 "dataset.record_length_bytes_stdev",
				 "does not go with record_dims: sizes vary "
				 "with record_length_bytes only");
	for (size_t i = 0; i < d->n; i++) {
		if (d->v[i] < 1)
			return pen__fail(err, PEN_EINVAL, "dataset.record_dims",
					 "axis %zu is %" PRId64
					 "; at least 1 is needed",
					 i, d->v[i]);
		l->dims[i] = d->v[i];
	}
	l->ndim = (uint32_t)d->n;
	if (parts > 1 && d->v[0] % (int64_t)parts)
		return pen__fail(err, PEN_EINVAL,
				 "dataset.hdf5.num_dset_per_record",
				 "record_dims[0] = %" PRId64
				 " cannot be cut into %" PRIu64,
				 d->v[0], parts);
	return 0;
}

/* max(int(v), 1), and too large for a record where it is. */
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
			return pen__fail(err, PEN_EINVAL,
					 "dataset.record_length_bytes_stdev",
					 "makes file %" PRIu64
					 " larger than any file can be",
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
		return pen__fail(err, PEN_EINVAL, "dataset.record_length_bytes",
				 "must be at least 1 and below 4e18");
	if (l->c->dataset.hdf5_num_dset > 1 &&
	    !strcmp(l->c->dataset.format, "hdf5"))
		return pen__fail(err, PEN_EINVAL,
				 "dataset.hdf5.num_dset_per_record",
				 "cuts record_dims, which are not given");
	l->ndim = 2;
	l->dims[0] = l->dims[1] = one;
	return sd > 0 && l->nfiles ? draw_sides(l, side, sd, err) : 0;
}

/* Every file's payload, and all of them together, can be counted. */
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
			return pen__fail(err, PEN_EINVAL, "dataset",
					 "file %" PRIu64
					 " would be larger than any file",
					 i);
	}
	if (!l->sides && __builtin_mul_overflow(sum, l->nfiles, &sum))
		return pen__fail(err, PEN_EINVAL, "dataset",
				 "is larger than can be counted");
	return 0;
}

/* ---- names ---- */

/* os.path.join(storage_root, data_folder): an absolute folder stands alone. */
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
	/* room for what comes below it */
	if (k < 0 ||
	    (size_t)k + (prefix ? strlen(prefix) : 0) + 160 >= sizeof(l->root))
		return pen__fail(err, PEN_EINVAL, "dataset.data_folder",
				 "is too long a path");
	for (; k > 1 && l->root[k - 1] == '/'; k--)
		l->root[k - 1] = '\0';
	if (prefix && strchr(prefix, '/'))
		return pen__fail(err, PEN_EINVAL, "dataset.file_prefix",
				 "%s: names of files have no slash", prefix);
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

/* ---- all of it ---- */

int pen__layout_init(struct pen_data_layout *l, const struct pen_config *c,
		     struct pen_err *err)
{
	const char *type = c->dataset.record_element_type;
	int rc;

	*l = (struct pen_data_layout){ .c = c };
	if (!c->dataset.format || !pen_help_of("format", c->dataset.format))
		return pen__fail(err, PEN_EINVAL, "dataset.format",
				 "%s is not a format; see `penstock formats`",
				 c->dataset.format ? c->dataset.format : "");
	if (__builtin_add_overflow(c->dataset.num_files_train,
				   c->dataset.num_files_eval, &l->nfiles) ||
	    l->nfiles > INT64_MAX / 16)
		return pen__fail(err, PEN_EINVAL, "dataset.num_files_train",
				 "is more than can be counted");
	l->nsamples = is_image(c) ? 1 : c->dataset.num_samples_per_file;
	if (!l->nsamples)
		return pen__fail(err, PEN_EINVAL,
				 "dataset.num_samples_per_file",
				 "is 0; at least 1 is needed");
	/* images are bytes, whatever else is asked for */
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

	for (uint32_t k = 0; k < n; k++) /* checked at the beginning */
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
