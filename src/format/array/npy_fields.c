/*
 * Are the npy files of a folder samples, or fields of the same samples? A
 * thousand pictures are samples; x.npy and y.npy are fields (the format
 * arrays). The files do not say, so there is a rule for folders without
 * format= and samples=, which docs/formats.md documents:
 *
 *  - Files whose names differ only in digits are a series: samples.
 *  - Otherwise, arrays with first axes of equal length are fields if they
 *    cannot be samples (different types or numbers of axes), if they are few
 *    and differ in shape, or if one is named x, y, label or target.
 *  - Many arrays of one type and shape are samples.
 *  - All other cases are ambiguous: an error that says what to set.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "format/array/npy.h"

#define FEW 16

struct files {
	const struct pen_index *ix;
	bool series; /* names differ only in digits */
	bool mixed;  /* some of them do */
	bool called; /* one has a typical field name */
	bool rows;   /* first axes have equal length, above 1 */
	bool alike;  /* types and shapes are equal */
	bool apart;  /* they cannot be samples of one data set */
	uint64_t n;
};

/* The last component of a path, without .npy. */
static size_t stem_of(const char *path, const char **stem)
{
	const char *slash = strrchr(path, '/');
	size_t n;

	*stem = slash ? slash + 1 : path;
	n = strlen(*stem);
	return n > 4 && strcmp(*stem + n - 4, ".npy") == 0 ? n - 4 : n;
}

/* Replaces each number by "#": equal for the names of a series. */
static void plain_name(const char *path, char *out, size_t cap)
{
	const char *s;
	size_t n = stem_of(path, &s), k = 0;

	for (size_t i = 0; i < n && k + 1 < cap; i++) {
		if (!isdigit((unsigned char)s[i]))
			out[k++] = s[i];
		else if (!k || out[k - 1] != '#')
			out[k++] = '#';
	}
	out[k] = '\0';
}

/* Whether a word of the name is a typical field name. */
static bool names_field(const char *path)
{
	static const char *const names[] = { "x",      "y",	 "label",
					     "labels", "target", "targets" };
	const char *s;
	size_t n = stem_of(path, &s);

	for (size_t i = 0, k; i < n; i += k + 1) {
		for (k = 0; i + k < n && isalpha((unsigned char)s[i + k]); k++)
			;
		for (size_t w = 0; w < sizeof(names) / sizeof(*names); w++)
			if (strlen(names[w]) == k &&
			    strncasecmp(s + i, names[w], k) == 0)
				return true;
	}
	return false;
}

static bool same_folder(const char *a, const char *b)
{
	const char *x = strrchr(a, '/'), *y = strrchr(b, '/');
	const size_t n = x ? (size_t)(x - a) : 0;

	return n == (y ? (size_t)(y - b) : 0) && memcmp(a, b, n) == 0;
}

/* False: they are in different folders. */
static bool look_at_names(struct files *f)
{
	char a[512], b[512], x[256], y[256];
	uint64_t same = 0, pairs = 0;

	for (uint64_t i = 0; i < f->n; i++) {
		f->ix->name_of(f->ix, i, a, sizeof(a));
		f->called |= names_field(a);
		plain_name(a, x, sizeof(x));
		for (uint64_t k = 0; k < i; k++) {
			f->ix->name_of(f->ix, k, b, sizeof(b));
			if (!same_folder(a, b))
				return false;
			plain_name(b, y, sizeof(y));
			same += strcmp(x, y) == 0;
			pairs++;
		}
	}
	f->series = same == pairs;
	f->mixed = same > 0;
	return true;
}

static bool header_of(const struct files *f, uint64_t object, struct pen_npy *h)
{
	const struct pen_span s =
		f->ix->blob(f->ix, f->ix->blob_of(f->ix, object));
	struct pen_bytes b = pen__bytes(s.p, s.n);

	pen__take_u8(&b); /* the mode of samples */
	return pen__npy_take(&b, h);
}

static bool look_at_arrays(struct files *f)
{
	struct pen_npy first, h;

	f->rows = f->alike = true;
	for (uint64_t i = 0; i < f->n; i++) {
		if (!header_of(f, i, i ? &h : &first))
			return false;
		if (!i)
			h = first;
		f->rows &= h.a.ndim && h.a.shape[0] > 1 && first.a.ndim &&
			   h.a.shape[0] == first.a.shape[0];
		f->apart |= h.a.dtype != first.a.dtype ||
			    h.a.ndim != first.a.ndim;
		f->alike &= !f->apart &&
			    memcmp(h.a.shape, first.a.shape,
				   h.a.ndim * sizeof(*h.a.shape)) == 0;
	}
	return true;
}

static int ambiguous(const struct files *f, struct pen_err *err)
{
	char name[256];

	f->ix->name_of(f->ix, 0, name, sizeof(name));
	return pen__fail(
		err, P_AMBIGUOUS_DATA, name,
		"the %" PRIu64
		" arrays of this directory can be fields or samples; set "
		"format=arrays (an array is a field, a row is a "
		"sample) or format.samples=file",
		f->n);
}

int pen__npy_together(const struct pen_index *ix, uint64_t nbad,
		      const char **other, struct pen_err *err)
{
	struct files f = { .ix = ix, .n = ix->nobjects };

	*other = NULL;
	if (f.n < 2 || f.n > PEN_MAX_FIELDS || !look_at_names(&f) || f.series)
		return 0;
	if (nbad) /* their contents are unknown */
		return ambiguous(&f, err);
	if (!look_at_arrays(&f) || !f.rows)
		return 0;
	if (!f.apart && f.n > FEW && f.alike)
		return 0;
	if (!f.apart && (f.n > FEW || f.mixed || (f.alike && !f.called)))
		return ambiguous(&f, err);
	*other = "arrays";
	return 0;
}
