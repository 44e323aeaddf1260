/*
 * labels=: the label is a field of every batch, of every format, whatever
 * happens to the order, the rows and the other fields; its names; and what is
 * rejected.
 */
#include <math.h>

#include "engine.h"

static double label_of(uint64_t id)
{
	return (double)(id * 7 % 5) + 100;
}

static void make_labels(const char *path, const struct eng_set *s)
{
	double y[64];

	for (uint64_t i = 0; i < eng_total(s); i++)
		y[i] = label_of(i);
	eng_numbers(path, PEN_I64, y, eng_total(s));
}

/* The last field of a batch is the label of its samples. */
static bool labelled(const struct pen_batch *b, const char *name)
{
	const struct pen_tensor *t = NULL;
	bool ok;

	for (uint32_t i = 0; i < b->ntensors; i++)
		if (strcmp(b->tensors[i].name, name) == 0)
			t = &b->tensors[i];
	ok = CHECK(t != NULL) && CHECK_EQ(t->dtype, PEN_I64) &&
	     CHECK_EQ(t->layout, PEN_DENSE) && CHECK_EQ(t->ndim, 1) &&
	     CHECK_EQ(t->shape[0], b->nsamples) &&
	     CHECK_EQ(t->nbytes, 8 * (size_t)b->nsamples);
	for (uint32_t r = 0; ok && r < b->nsamples; r++)
		ok = CHECK_EQ(((const int64_t *)t->data)[r],
			      (int64_t)label_of(b->ids[r]));
	return ok;
}

static void load(const struct eng_set *s, const char *how)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(&err,
					"%s %s labels=l.npy label_name=class "
					"batch_size=5 threads=3 epochs=2 %s",
					s->name, s->read, how);
	struct pen_batch *b;
	uint64_t n = 0;
	bool ok = true;
	int rc = -1;

	if (!CHECK(l)) {
		fprintf(stderr, "%s %s: %s: %s\n", s->name, how, err.where,
			err.msg);
		return;
	}
	CHECK_EQ(pen_dataset_nfields(l->ds), eng_nfields(s) + 1);
	CHECK_STR(pen_dataset_field(l->ds, eng_nfields(s))->name, "class");
	for (int ends = 0; ok && ends < 2;) {
		rc = pen_loader_next(l, &b, &err);
		ends += rc == PEN_END;
		ok = rc == PEN_END || CHECK_EQ(rc, 0);
		if (rc)
			continue;
		ok = labelled(b, "class") &&
		     (strstr(how, "shapes=") || strstr(how, "pack=") ||
		      CHECK(eng_right(s, l->ds, b)));
		n += b->nsamples;
		pen_batch_unref(b);
	}
	CHECK(n > 0);
	if (!ok)
		fprintf(stderr, "%s %s\n", s->name, how);
	pen_loader_close(l);
}

static void test_formats(void)
{
	static const char *const how[] = {
		"store=posix",
		"store=mmap shuffle=true",
		"sampler=balanced",
		"sampler=block sampler.chunk=3 sampler.chunks=2 store=posix",
		"subset=1:11:3 shuffle=true",
		"subset=some.npy shuffle=true",
		"shuffle=true world=3 rank=2",
		"shuffle=true shapes=padded",
	};
	double some[] = { 5, 0, 7, 5, 2, 9 };

	eng_numbers("some.npy", PEN_I64, some, 6);
	for (size_t i = 0; i < ENG_NSETS; i++) {
		make_labels("l.npy", &eng_sets[i]);
		for (size_t k = 0; k < sizeof(how) / sizeof(*how); k++)
			load(&eng_sets[i], how[k]);
	}
	/* a read after those of the index fails */
	make_labels("l.npy", eng_find("npy_file"));
	load(eng_find("npy_file"), "store=fault store.fail_nth=26 "
				   "on_error=skip shuffle=true");
	load(eng_find("npy_file"), "store=fault store.fail_nth=26 "
				   "on_error=substitute threads=1");
	make_labels("l.npy", eng_find("npy_ragged"));
	load(eng_find("npy_ragged"), "store=fault store.fail_nth=26 "
				     "on_error=skip");
	make_labels("l.npy", eng_find("fasta"));
	load(eng_find("fasta"), "pack=40 batch_size=2");
	load(eng_find("fasta"), "batch_tokens=60 shapes=padded");
}

static void test_asked(void)
{
	const uint64_t ids[] = { 22, 0, 7 };
	struct pen_loader *l = NULL;
	struct pen_spec *spec = NULL;
	struct pen_batch *b;
	char text[] = "npy_file labels=l.npy format.samples=file";

	make_labels("l.npy", eng_find("npy_file"));
	CHECK_EQ(eng_spec(&spec, text, NULL), 0);
	CHECK_EQ(pen_loader_open_asked(&l, spec, NULL), 0);
	CHECK_EQ(pen_loader_ask(l, ids, 3, NULL), 0);
	if (CHECK_EQ(pen_loader_next(l, &b, NULL), 0)) {
		CHECK(labelled(b, "y"));
		pen_batch_unref(b);
	}
	pen_loader_close(l);
	pen_spec_free(spec);
}

/* Folders that have samples, named by where their paths differ. */
static void test_folders(void)
{
	const struct eng_set *s = eng_find("npy_first");
	struct pen_loader *l =
		eng_open(NULL, "%s %s labels=folder", s->name, s->read);
	const uint32_t y = eng_nfields(s);
	struct pen_batch *b;
	char name[8], path[64];

	CHECK_EQ(pen_dataset_nlabels(l->ds, 0), 0);
	CHECK_EQ(pen_dataset_nlabels(l->ds, y), 3);
	CHECK_EQ(pen_dataset_nlabels(l->ds, y + 1), 0);
	CHECK_EQ(pen_dataset_label(l->ds, y, 0, name, sizeof(name)), 0);
	CHECK_STR(name, "c0");
	CHECK_EQ(pen_dataset_label(l->ds, y, 1, name, sizeof(name)), 0);
	CHECK_STR(name, "c1");
	CHECK_EQ(pen_dataset_label(l->ds, y, 3, name, sizeof(name)),
		 PEN_ENOTFOUND);
	while (pen_loader_next(l, &b, NULL) == 0) {
		const int64_t *v = b->tensors[y].data;

		for (uint32_t i = 0; i < b->nsamples; i++) {
			pen_dataset_object_name(l->ds, b->ids[i], path,
						sizeof(path));
			pen_dataset_label(l->ds, y, (uint64_t)v[i], name,
					  sizeof(name));
			CHECK(strstr(path, name));
		}
		pen_batch_unref(b);
	}
	pen_loader_close(l);
	l = eng_open(NULL, "%s/c1 %s labels=folder", s->name, s->read);
	CHECK_EQ(pen_dataset_nlabels(l->ds, y), 1);
	CHECK_EQ(pen_dataset_label(l->ds, y, 0, name, sizeof(name)), 0);
	CHECK_STR(name, "c1");
	pen_loader_close(l);
}

/* The fields of the first batch, one after another. */
static void fields(const char *want, const char *how)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(&err, "%s", how);
	struct pen_batch *b;
	char got[256] = "";
	size_t n = 0;

	if (!l) {
		snprintf(got, sizeof(got), "%.40s: %.48s", err.where, err.msg);
	} else if (CHECK_EQ(pen_loader_next(l, &b, &err), 0)) {
		for (uint32_t i = 0; i < b->ntensors; i++)
			n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%s",
					      i ? " " : "", b->tensors[i].name);
		pen_batch_unref(b);
	}
	CHECK_STR(got, want);
	pen_loader_close(l);
}

static void test_fields(void)
{
	static const char first[] = "npz_first format.samples=first";
	char how[256];

#define LOOK(want, rest)                                                       \
	(snprintf(how, sizeof(how), "%s labels=z.npy %s", first, rest),        \
	 fields(want, how))
	make_labels("z.npy", eng_find("npz_first"));
	LOOK("x y class", "label_name=class");
	LOOK("x class", "label_name=class fields=x,class");
	LOOK("class", "label_name=class fields=class");
	LOOK("x", "fields=x");
	LOOK("y", "fields=y label_name=class");
	LOOK("labels: the label is delivered as the field 'y', which t",
	     "fields=x,y");
	LOOK("labels: the label is delivered as the field 'y', which t",
	     "fields=y");
	LOOK("x y", "fields=x,y format.fields=x"); /* the data's is not taken */
	LOOK("labels: the label is delivered as the field 'y', which t", "");
	LOOK("labels: the label is delivered as the field 'x', which t",
	     "label_name=x");
	LOOK("fields: unknown field 'z'; choose from: x, class",
	     "label_name=class fields=x,class,z format.fields=x");
	LOOK("fields: leaves no field for take= or cast=; include one,",
	     "label_name=class fields=class cast=float64");
	LOOK("label_name: not a valid field name; use at most 63 bytes and",
	     "label_name=a,b");
#undef LOOK
	fields("label_name: has no effect without labels=; set it too, or om",
	       "npz_first format.samples=first label_name=class");
}

static void refused(const char *where, const char *word, const char *how)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(&err, "npy_file %s", how);

	CHECK(!l);
	CHECK_STR(err.where, where);
	if (!CHECK(strstr(err.msg, word)))
		fprintf(stderr, "  %s\n", err.msg);
	pen_loader_close(l);
}

static void test_numbers(void)
{
	double y[23], some[] = { 3, 4, 3 }, of[] = { 1, 2, 5 };
	struct pen_loader *l;
	struct pen_batch *b;

	for (int i = 0; i < 23; i++)
		y[i] = i;
	y[4] = NAN;
	eng_numbers("none.npy", PEN_F64, y, 23);
	l = eng_open(NULL, "npy_file labels=none.npy");
	if (CHECK_EQ(pen_loader_next(l, &b, NULL), 0)) {
		CHECK_EQ(((int64_t *)b->tensors[1].data)[4], -1);
		CHECK_EQ(((int64_t *)b->tensors[1].data)[5], 5);
		pen_batch_unref(b);
	}
	pen_loader_close(l);
	y[5] = -1;
	eng_numbers("minus.npy", PEN_F64, y, 23);
	refused("minus.npy", "others have the label -1", "labels=minus.npy");
	y[5] = 0.5;
	eng_numbers("half.npy", PEN_F64, y, 23);
	refused("half.npy", "must be integers", "labels=half.npy");
	y[5] = 0x1p60;
	eng_numbers("large.npy", PEN_F64, y, 23);
	refused("large.npy", "below 2^53", "labels=large.npy");
	eng_numbers("ids.npy", PEN_I64, some, 3);
	eng_numbers("of.npy", PEN_I64, of, 3);
	refused("of.npy", "two labels", "labels=of.npy subset=ids.npy");
	of[2] = 1;
	eng_numbers("of.npy", PEN_I64, of, 3);
	l = eng_open(NULL, "npy_file labels=of.npy subset=ids.npy");
	if (CHECK_EQ(pen_loader_next(l, &b, NULL), 0)) {
		CHECK_EQ(((int64_t *)b->tensors[1].data)[0], 1);
		CHECK_EQ(((int64_t *)b->tensors[1].data)[1], 2);
		CHECK_EQ(((int64_t *)b->tensors[1].data)[2], 1);
		pen_batch_unref(b);
	}
	pen_loader_close(l);
}

/* Each allocation in turn fails. */
static void test_nomem(const char *how)
{
	for (uint64_t nth = 1;; nth = eng_next_nth(nth)) {
		struct pen_err err;
		struct pen_loader *l;

		pen__mem_fail_nth(nth, false);
		l = eng_open(&err, "npy_first format.samples=first %s", how);
		pen__mem_fail_nth(0, false);
		if (l) {
			pen_loader_close(l);
			break;
		}
		if (!CHECK_EQ(err.code, PEN_ENOMEM))
			break;
	}
}

int main(void)
{
	eng_start("labels");
	for (size_t i = 0; i < ENG_NSETS; i++)
		eng_make(&eng_sets[i]);
	test_formats();
	test_asked();
	test_folders();
	test_fields();
	test_numbers();
	test_nomem("labels=folder threads=1");
	test_nomem("labels=folder fields=x,y subset=some.npy threads=1");
	eng_end();
	return test_end();
}
