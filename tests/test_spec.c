/*
 * Settings, and what they select: objects by directory, glob, list and name;
 * samples by subset; weights and labels. Anything invalid is rejected when it
 * is set or opened, with its name and advice.
 */
#include <fcntl.h>

#include "engine.h"

/* ---- settings ---- */

static void bad_setting(const char *setting, const char *says)
{
	struct pen_err err = { 0 };
	struct pen_spec *s;

	CHECK_EQ(pen_spec_new(&s, &err), 0);
	CHECK_EQ(pen_spec_parse(s, setting, &err), PEN_EINVAL);
	if (!CHECK(strstr(err.msg, says) || strstr(err.where, says)))
		fprintf(stderr, "  %s: %s: %s\n", setting, err.where, err.msg);
	CHECK_EQ(pen_spec_parse(s, setting, NULL), PEN_EINVAL);
	pen_spec_free(s);
}

static void test_settings(void)
{
	struct pen_err err = { 0 };
	struct pen_spec *s;

	bad_setting("bach_size=3", "batch_size");
	bad_setting("batch_size=0", "batch_size");
	bad_setting("batch_size=many", "many");
	bad_setting("batch_size=-1", "-1");
	bad_setting("threads=70000", "65536");
	bad_setting("tail=cut", "keep");
	bad_setting("on_error=ignore", "skip");
	bad_setting("mlock=perhaps", "perhaps");
	bad_setting("memory=12parsecs", "12parsecs");
	bad_setting("no setting", "key=value");
	bad_setting("=3", "key=value");
	CHECK_EQ(pen_spec_new(&s, &err), 0);
	CHECK_EQ(pen_spec_parse(s, "++batch_size=10k", &err), 0);
	CHECK_EQ(s->batch_size, 10000);
	CHECK_EQ(pen_spec_set(s, "memory", "1.5GiB", &err), 0);
	CHECK_EQ(s->memory, 3ull << 29);
	CHECK_EQ(pen_spec_add_path(s, "", &err), PEN_EINVAL);
	CHECK_EQ(pen_spec_set(s, "store.x", "1", &err), 0);
	CHECK_EQ(pen_spec_set(s, "store.x", "2", &err), 0);
	CHECK_STR(pen__pairs_get(&s->for_store, "x"), "2");
	CHECK(!pen__pairs_get(&s->for_store, "y"));
	CHECK_STR(pen__spec_sampler(s), "sequential");
	CHECK_EQ(pen_spec_set(s, "shuffle", "Yes", &err), 0);
	CHECK_STR(pen__spec_sampler(s), "shuffle");
	CHECK_EQ(pen_spec_set(s, "shuffle", "off", &err), 0);
	CHECK_STR(pen__spec_sampler(s), "sequential");
	CHECK_EQ(pen_spec_set(s, "shuffle", "block", &err), 0);
	CHECK_STR(pen__spec_sampler(s), "block");
	CHECK_EQ(pen_spec_set(s, "sampler", "weighted", &err), 0);
	CHECK_STR(pen__spec_sampler(s), "weighted");
	pen_spec_free(s);
	pen_spec_free(NULL);
}

static void test_copy(void)
{
	struct pen_spec *s, *c = NULL;
	uint64_t total;

	CHECK_EQ(pen_spec_new(&s, NULL), 0);
	CHECK_EQ(pen_spec_add_path(s, "a", NULL), 0);
	CHECK_EQ(pen_spec_set(s, "format.samples", "first", NULL), 0);
	pen__mem_fail_nth(0, false);
	CHECK_EQ(pen_spec_copy(&c, s, NULL), 0);
	total = pen__mem_count();
	CHECK_STR(c->paths[0], "a");
	CHECK(c->paths[0] != s->paths[0]);
	CHECK_STR(pen__pairs_get(&c->for_format, "samples"), "first");
	pen_spec_free(c);
	for (uint64_t n = 1; n <= total; n++) {
		pen__mem_fail_nth(n, false);
		CHECK_EQ(pen_spec_copy(&c, s, NULL), PEN_ENOMEM);
	}
	pen__mem_fail_nth(0, false);
	pen_spec_free(s);
}

/* ---- what cannot be opened ---- */

static void __attribute__((format(printf, 3, 4)))
refused(int code, const char *says, const char *fmt, ...)
{
	struct pen_loader *l;
	struct pen_err err;
	char text[ENG_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	l = eng_open(&err, "%s", text);
	if (!CHECK(!l && err.code == code &&
		   (strstr(err.msg, says) || strstr(err.where, says))))
		fprintf(stderr, "  %s: (%d) %s: %s\n", text, err.code,
			err.where, err.msg);
	CHECK(!strchr(err.msg, '\n') && err.msg[0]);
	pen_loader_close(l);
}

static void test_refused(void)
{
	refused(PEN_EINVAL, "path", "batch_size=2");
	refused(PEN_EINVAL, "floppy", "raw store=floppy");
	refused(PEN_EINVAL, "direct", "npy_file store.direct=true");
	refused(PEN_EINVAL, "direct", "npy_file store=posix store.dirct=true");
	refused(PEN_EINVAL, "npx", "npy_file format=npx");
	refused(PEN_EINVAL, "samples", "npy_file format.sample=file");
	refused(PEN_EINVAL, "shufle", "npy_file sampler=shufle");
	refused(PEN_EINVAL, "chunk", "npy_file sampler=block sampler.chnk=3");
	refused(PEN_EINVAL, "world", "npy_file rank=2 world=2");
	refused(PEN_EINVAL, "weights=", "npy_file sampler=weighted");
	refused(PEN_EINVAL, "labels=", "npy_file sampler=balanced");
	refused(PEN_ENOTFOUND, "nowhere", "nowhere");
	refused(PEN_ENOTFOUND, "nowhere", "npy_file nowhere");
}

/* ---- settings that exclude one another ---- */

static const struct {
	const char *how, *where, *says; /* where NULL: fine */
} pairs[] = {
	{ "shuffle=false sampler=shuffle", "shuffle", "sampler=shuffle" },
	{ "shuffle=true sampler=sequential", "shuffle", "sampler=sequential" },
	{ "shuffle=block sampler=shuffle", "shuffle", "sampler=shuffle" },
	{ "shuffle=maybe sampler=shuffle", "shuffle", "sampler=shuffle" },
	{ "shuffle=true sampler=block", NULL, "" },
	{ "shuffle=no sampler=sequential", NULL, "" },
	{ "shuffle=block sampler=block", NULL, "" },
	{ "drop_last=true tail=pad", "drop_last", "tail=pad" },
	{ "tail=keep drop_last=true", "drop_last", "tail=keep" },
	{ "tail=drop drop_last=false", "drop_last", "tail=drop" },
	{ "tail=drop drop_last=true", NULL, "" },
	{ "tail=keep drop_last=false", NULL, "" },
	{ "store=mmap queue_depth=4", "queue_depth", "store=uring" },
	{ "store=posix queue_depth=4", "queue_depth", "store=uring" },
	{ "store=ram queue_depth=4", "queue_depth", "store=uring" },
	{ "store=fault queue_depth=4", NULL, "" },
	{ "store=mmap queue_depth=0", NULL, "" },
	{ "queue_depth=4", NULL, "" },
	{ "weights=w", "weights", "sampler=weighted" },
	{ "weights=w shuffle=true", "weights", "sampler=weighted" },
	{ "lengths=field:x", "lengths", "batch_tokens=" },
	{ "max_errors=1", "max_errors", "on_error=skip" },
	{ "max_errors=1 on_error=skip", NULL, "" },
	{ "pad_to=batch", "pad_to", "shapes=padded" },
	{ "pad_multiple=4 shapes=ragged", "pad_multiple", "shapes=padded" },
	{ "pad_to=data pad_multiple=4 shapes=padded", NULL, "" },
	{ "too_long=alone", "too_long", "batch_tokens=" },
	{ "decode=false take=1", "take", "decode=false" },
	{ "decode=false cast=float64", "cast", "decode=false" },
	{ "store.direct=true", "store", "name a store" },
	{ "cache.memory=1MB", "cache", "cache=ddict" },
};

static void test_pairs(void)
{
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		struct pen_err err;
		struct pen_loader *l = eng_open(
			&err, "npy_file %s batch_size=2", pairs[i].how);

		if (!CHECK(pairs[i].where
				   ? !l && !strcmp(err.where, pairs[i].where) &&
					     strstr(err.msg, pairs[i].says)
				   : l != NULL))
			fprintf(stderr, "  %s: %s: %s\n", pairs[i].how,
				err.where, err.msg);
		pen_loader_close(l);
	}
}

/* The same without any data, and options of what is selected. */
static void test_try(void)
{
	static const char *const bad[][2] = {
		{ "store=mmap\nqueue_depth=4", "queue_depth" },
		{ "store=mmap\nstore.direct=true", "store.direct" },
		{ "sampler=block\nsampler.chnk=1", "sampler.chnk" },
		{ "sampler=blok", "blok" },
		{ "format=npy\nformat.sample=1", "format.sample" },
		{ "format=npx", "npx" },
		{ "store=floppy", "floppy" },
		{ "store=posix\nstore.direct=true\nsampler=block", NULL },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct pen_err err = { 0 };
		struct pen_spec *s;
		char text[128];

		CHECK_EQ(pen_spec_new(&s, NULL), 0);
		snprintf(text, sizeof(text), "%s", bad[i][0]);
		for (char *at = text, *end; at; at = end) {
			end = strchr(at, '\n');
			if (end)
				*end++ = '\0';
			CHECK_EQ(pen_spec_parse(s, at, &err), 0);
		}
		CHECK_EQ(pen_spec_check(s, &err), bad[i][1] ? PEN_EINVAL : 0);
		CHECK_STR(err.where, bad[i][1] ? bad[i][1] : "");
		pen_spec_free(s);
	}
}

/* ---- objects ---- */

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* The files' numbers, in order, as "3 1 2". */
static void files_are(const char *want, const char *how)
{
	const struct eng_set *s = eng_find("npy_file");
	struct pen_err err;
	struct pen_loader *l = eng_open(&err, "%s format.samples=file", how);
	char got[256] = "";
	struct pen_batch *b;

	while (l && pen_loader_next(l, &b, &err) == 0) {
		CHECK(eng_right(s, l->ds, b));
		for (uint32_t i = 0; i < b->nsamples; i++)
			snprintf(got + strlen(got), sizeof(got) - strlen(got),
				 "%s%d", *got ? " " : "",
				 (int)eng_origin(s, l->ds, b->ids[i]));
		pen_batch_unref(b);
	}
	if (!l)
		fprintf(stderr, "  %s: %s: %s\n", how, err.where, err.msg);
	CHECK_STR(got, want);
	pen_loader_close(l);
}

static void test_objects(void)
{
	files_are("16 17 18 19 20 21 22", "npy_file/c2");
	files_are("20 21 22", "npy_file/c2/f02*.npy");
	files_are("0 10 20 8", "npy_file/*/f0[012]0.npy npy_file/c1/f008.npy");
	files_are("3", "npy_file/c0/f003.npy");
	files_are("9 2", "npy_file/c1/f009.npy npy_file/c0/f002.npy");
	put("list", "npy_file/c1/f009.npy\nnpy_file/c0/f002.npy\r\n\n"
		    "npy_file/c2/f020.npy");
	files_are("9 2 20", "@list");
	put("npy_file/list.txt", "c1/f009.npy\nc0/f001.npy\n");
	files_are("9 1", "@npy_file/list.txt");
	put("list", "npy_file/c1/f009.npy\nnpy_file/none.npy\n");
	refused(PEN_ENOTFOUND, "none.npy", "@list");
	refused(PEN_ENOTFOUND, "no_list", "@no_list");
	put("list", "\n");
	refused(PEN_ENOTFOUND, "list", "@list");
	/* a name without a known suffix needs a format */
	CHECK_EQ(link("npy_file/c0/f003.npy", "f003"), 0);
	refused(PEN_ENOTFOUND, "format=", "f003");
	files_are("3", "./f003 format=npy");
}

static void test_odd_folders(void)
{
	CHECK_EQ(mkdir("odd", 0755), 0);
	refused(PEN_ENOTFOUND, "odd", "odd");
	CHECK_EQ(mkfifo("odd/f001.npy", 0644), 0);
	refused(PEN_ENOTFOUND, "odd", "odd");
	CHECK_EQ(symlink("f001.npy", "odd/f003.npy"), 0);
	CHECK_EQ(symlink("nowhere", "odd/f004.npy"), 0);
	CHECK_EQ(link("npy_file/c0/f005.npy", "odd/f005.npy"), 0);
	put("odd/.hidden.npy", "x");
	put("odd/half.npy.tmp", "x");
	put("odd/readme.txt", "x");
	files_are("5", "odd");
	CHECK_EQ(link("raw/c0/f000.bin", "odd/f006.bin"), 0);
	CHECK_EQ(link("raw/c0/f000.bin", "odd/f007.bin"), 0);
	refused(PEN_EINVAL, "1 npy files and 2 others", "odd");
	files_are("5", "odd format=npy");
	/* useless, but no reason to stop when asked to continue */
	put("odd/f009.npy", "no array");
	refused(PEN_EDATA, "odd/f009.npy", "odd format=npy");
	files_are("5", "odd format=npy on_error=skip");
	CHECK_EQ(unlink("odd/f009.npy"), 0);
	put("odd/f000.npy", "");
	refused(PEN_EDATA, "odd/f000.npy", "odd format=npy");
	files_are("5", "odd format=npy on_error=skip");
	CHECK_EQ(unlink("odd/f000.npy"), 0);
	if (geteuid()) {
		put("odd/f008.npy", "x");
		CHECK_EQ(chmod("odd/f008.npy", 0), 0);
		refused(PEN_EIO, "f008.npy", "odd format=npy");
		files_are("5", "odd format=npy on_error=skip");
	}
}

/* ---- samples ---- */

static void ids_are(const char *want, const char *how)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(&err, "%s npy_file", how);
	char got[256] = "";
	struct pen_batch *b;

	while (l && pen_loader_next(l, &b, &err) == 0) {
		CHECK(eng_right(eng_find("npy_file"), l->ds, b));
		for (uint32_t i = 0; i < b->nsamples; i++)
			snprintf(got + strlen(got), sizeof(got) - strlen(got),
				 "%s%d", *got ? " " : "", (int)b->ids[i]);
		pen_batch_unref(b);
	}
	if (!l)
		fprintf(stderr, "  %s: %s: %s\n", how, err.where, err.msg);
	CHECK_STR(got, want);
	pen_loader_close(l);
}

static void test_subsets(void)
{
	double v[23] = { 5, 3, 3, 22 }, mask[23] = { 0 }, half[] = { 1.5 };

	ids_are("2 3 4", "subset=2:5");
	ids_are("0 1", "subset=:2");
	ids_are("21 22", "subset=-2:");
	ids_are("0 10 20", "subset=::10");
	ids_are("3 8", "subset=3:10:5");
	ids_are("20 21 22", "subset=20:99");
	ids_are("22", "subset=-1:23:9223372036854775807");
	refused(PEN_EINVAL, "5:5", "npy_file subset=5:5");
	refused(PEN_EINVAL, "selects no samples", "npy_file subset=30:40");
	refused(PEN_ENOTFOUND, "1:2:0", "npy_file subset=1:2:0");
	refused(PEN_ENOTFOUND, "1:2:3:4", "npy_file subset=1:2:3:4");
	eng_numbers("ids.npy", PEN_I64, v, 4);
	ids_are("5 3 3 22", "subset=ids.npy");
	put("ids.txt", "7\n1e1\n 2 \n");
	ids_are("7 10 2", "subset=ids.txt");
	mask[4] = mask[19] = 1;
	eng_numbers("mask.npy", PEN_BOOL, mask, 23);
	ids_are("4 19", "subset=mask.npy");
	eng_numbers("short.npy", PEN_BOOL, mask, 22);
	refused(PEN_EINVAL, "short.npy", "npy_file subset=short.npy");
	v[1] = 23;
	eng_numbers("high.npy", PEN_I64, v, 2);
	refused(PEN_EINVAL, "entry 1", "npy_file subset=high.npy");
	v[1] = -1;
	eng_numbers("low.npy", PEN_I64, v, 2);
	refused(PEN_EINVAL, "entry 1", "npy_file subset=low.npy");
	eng_numbers("half.npy", PEN_F64, half, 1);
	refused(PEN_EINVAL, "entry 0", "npy_file subset=half.npy");
	put("words.txt", "1\ntwo\n");
	refused(PEN_EDATA, "line 2", "npy_file subset=words.txt");
	put("none.txt", "");
	refused(PEN_EINVAL, "selects no samples", "npy_file subset=none.txt");
	refused(PEN_EINVAL, "one integer",
		"npy_file subset=npy_file/c0/"
		"f000.npy");
}

/* Draws with weights and labels only return what may be drawn. */
static void draws(const char *how, const char *allowed, uint64_t n)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(&err, "%s npy_file", how);
	char word[16];
	struct pen_batch *b;

	if (!CHECK(l))
		fprintf(stderr, "  %s: %s: %s\n", how, err.where, err.msg);
	while (l && pen_loader_next(l, &b, &err) == 0) {
		for (uint32_t i = 0; i < b->nsamples; i++, n--) {
			snprintf(word, sizeof(word), " %d ", (int)b->ids[i]);
			CHECK(strstr(allowed, word));
		}
		pen_batch_unref(b);
	}
	CHECK_EQ(n, 0);
	pen_loader_close(l);
}

static void test_weights(void)
{
	double w[23] = { 0 }, y[23] = { 0 };
	FILE *text;

	w[3] = w[7] = 2.5;
	w[8] = 0.1;
	eng_numbers("w.npy", PEN_F64, w, 23);
	draws("sampler=weighted weights=w.npy", " 3 7 8 ", 23);
	draws("sampler=weighted weights=w.npy subset=5:", " 7 8 ", 18);
	draws("sampler=weighted weights=w.npy sampler.replacement=false "
	      "sampler.length=3",
	      " 3 7 8 ", 3);
	/* as many as selected, not as the data has */
	eng_numbers("few.npy", PEN_F64, w + 3, 5);
	draws("sampler=weighted weights=few.npy subset=10:15", " 10 14 ", 5);
	refused(PEN_EINVAL, "few.npy",
		"npy_file sampler=weighted "
		"weights=few.npy");
	w[5] = -1;
	eng_numbers("neg.npy", PEN_F64, w, 23);
	refused(PEN_EINVAL, "weights",
		"npy_file sampler=weighted "
		"weights=neg.npy");
	memset(w, 0, sizeof(w));
	eng_numbers("zero.npy", PEN_F64, w, 23);
	refused(PEN_EINVAL, "weight",
		"npy_file sampler=weighted "
		"weights=zero.npy");
	refused(PEN_ENOTFOUND, "gone.npy",
		"npy_file sampler=weighted "
		"weights=gone.npy");
	/* 300 digits, of which the first 255 are a number, too */
	text = fopen("long.txt", "we");
	CHECK(text && fprintf(text, "%0300d\n", 1) == 301 && !fclose(text));
	refused(PEN_EDATA, "line 1",
		"npy_file sampler=weighted "
		"weights=long.txt");
	CHECK_EQ(mkdir("folder.txt", 0777), 0);
	refused(PEN_EIO, "Is a directory",
		"npy_file sampler=weighted "
		"weights=folder.txt");
	y[4] = 1;
	eng_numbers("y.npy", PEN_I64, y, 23);
	draws("sampler=balanced labels=y.npy subset=3:6", " 3 4 5 ", 3);
	draws("sampler=balanced labels=folder subset=0:9",
	      " 0 1 2 3 4 5 6 7 8 ", 9);
	eng_numbers("y5.npy", PEN_I64, y, 5);
	refused(PEN_EINVAL, "y5.npy",
		"npy_file sampler=balanced "
		"labels=y5.npy");
}

/* Settings as text that can be set again. */
static void test_get(void)
{
	static const char *const set[][3] = {
		{ "batch_size", "2k", "2000" }, { "memory", "1MiB", "1048576" },
		{ "tail", "drop", "drop" },	{ "decode", "no", "false" },
		{ "take", "3,4", "3x4" },	{ "cache", "ddict", "ddict" },
		{ "subset", "1:9", "1:9" },	{ "format.x", "a", "a" },
		{ "prefetch", "7", "7" },
	};
	struct pen_spec *s = NULL, *c = NULL;
	char text[64];

	CHECK_EQ(pen_spec_new(&s, NULL), 0);
	for (size_t i = 0; i < sizeof(set) / sizeof(*set); i++) {
		CHECK_EQ(pen_spec_set(s, set[i][0], set[i][1], NULL), 0);
		CHECK_EQ(pen_spec_get(s, set[i][0], text, sizeof(text)), 0);
		CHECK_STR(text, set[i][2]);
		CHECK_EQ(pen_spec_set(s, set[i][0], text, NULL), 0);
	}
	CHECK_EQ(pen_spec_number(s, "batch_size"), 2000);
	CHECK_EQ(pen_spec_number(s, "tail"), 0);
	CHECK_EQ(pen_spec_get(s, "nix", text, sizeof(text)), PEN_ENOTFOUND);
	CHECK_EQ(pen_spec_get(s, "store.x", text, sizeof(text)), PEN_ENOTFOUND);
	CHECK_EQ(pen_spec_get(s, "sampler", text, sizeof(text)), 0);
	CHECK_STR(text, "sequential");
	CHECK_EQ(pen_spec_set(s, "shuffle", "true", NULL), 0);
	CHECK_EQ(pen_spec_get(s, "sampler", text, 5), 0);
	CHECK_STR(text, "shuf");
	/* back to the previous state */
	CHECK_EQ(pen_spec_copy(&c, s, NULL), 0);
	CHECK_EQ(pen_spec_set(c, "batch_size", NULL, NULL), 0);
	CHECK_EQ(pen_spec_number(c, "batch_size"), 32);
	CHECK_EQ(pen_spec_set(c, "subset", NULL, NULL), 0);
	CHECK_EQ(pen_spec_get(c, "subset", text, sizeof(text)), 0);
	CHECK_STR(text, "");
	CHECK_EQ(pen_spec_set(c, "format.", NULL, NULL), 0);
	CHECK_EQ(pen_spec_get(c, "format.x", text, sizeof(text)),
		 PEN_ENOTFOUND);
	CHECK_EQ(pen_spec_number(s, "batch_size"), 2000);
	/* paths */
	CHECK(!pen_spec_path(s, 0));
	CHECK_EQ(pen_spec_add_path(s, "a", NULL), 0);
	CHECK_STR(pen_spec_path(s, 0), "a");
	CHECK(!pen_spec_path(s, 1));
	pen_spec_clear_paths(s);
	CHECK(!pen_spec_path(s, 0));
	pen_spec_free(s);
	pen_spec_free(c);
}

int main(void)
{
	eng_start("spec");
	eng_make(eng_find("npy_file"));
	eng_make(eng_find("raw"));
	test_get();
	test_settings();
	test_copy();
	test_refused();
	test_pairs();
	test_try();
	test_objects();
	test_odd_folders();
	test_subsets();
	test_weights();
	eng_end();
	return test_end();
}
