/* The object set: add, sort, duplicates, paths, limits, memory running out. */
#include "base/mem.h"
#include "store/objects.h"
#include "test.h"

static void path_is(const struct pen_objects *s, uint32_t i, const char *want)
{
	char buf[64];

	CHECK(pen__object_path(s, i, buf, sizeof(buf)));
	CHECK_STR(buf, want);
}

static void test_sort(void)
{
	static const struct {
		const char *dir, *name;
	} in[] = {
		{ "b", "2" },	 { "b", "10" },	  { "a/x", "z" },
		{ "a", "z" },	 { "b", "1" },	  { "a", "\xc3\xa4" },
		{ "a", "y" },	 { "b", "2" },	  { "", "q" },
		{ "/", "root" }, { ".", "here" },
	};
	static const char *const out[] = {
		"q",	      "here",  "/root", "a/y",	"a/z",
		"a/\xc3\xa4", "a/x/z", "b/1",	"b/10", "b/2",
	};
	const unsigned nin = sizeof(in) / sizeof(in[0]);
	const unsigned nout = sizeof(out) / sizeof(out[0]);
	struct pen_objects s = { 0 };
	uint32_t d;

	for (unsigned i = 0; i < nin; i++) {
		CHECK_EQ(pen__objects_add_dir(&s, in[i].dir, 1, 100 + i, &d),
			 0);
		CHECK_EQ(pen__objects_add(&s, d, in[i].name, i + 1, i), 0);
	}
	pen__objects_sort(&s);
	CHECK_EQ(s.nobj, nout);
	for (uint32_t i = 0; i < nout && i < s.nobj; i++)
		path_is(&s, i, out[i]);
	/* of equal ones the first stays, for directories too */
	CHECK_EQ(s.obj[9].size, 1);
	CHECK_EQ(s.ndir, 6);
	CHECK_EQ(s.dir[s.obj[9].dir].mtime_ns, 100);
	CHECK_EQ(s.total_bytes, 66 - 8);
	pen__objects_sort(&s);
	CHECK_EQ(s.nobj, nout);
	pen__objects_fini(&s);
	CHECK_EQ(s.nobj, 0);
}

static void test_empty(void)
{
	struct pen_objects s = { 0 };

	pen__objects_sort(&s);
	CHECK_EQ(s.nobj, 0);
	CHECK_EQ(pen__objects_add(&s, 0, "x", 1, 1), PEN_EINVAL);
	pen__objects_fini(&s);
}

static void test_many(void)
{
	struct pen_objects s = { 0 };
	const uint32_t n = 20011;
	uint32_t d[3];
	char name[32];

	for (unsigned i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "dir%u", 2 - i);
		CHECK_EQ(pen__objects_add_dir(&s, name, i, 0, &d[i]), 0);
	}
	for (uint32_t i = 0; i < n; i++) {
		/* 7919 and n share no factor: every number once */
		snprintf(name, sizeof(name), "%05u", i * 7919u % n);
		CHECK_EQ(pen__objects_add(&s, d[i % 3], name, 2, 0), 0);
	}
	pen__objects_sort(&s);
	CHECK_EQ(s.nobj, n);
	CHECK_EQ(s.total_bytes, 2 * n);
	for (uint32_t i = 1; i < n; i++) {
		int c = strcmp(pen__object_dir(&s, i - 1),
			       pen__object_dir(&s, i));

		if (!c)
			c = strcmp(pen__object_name(&s, i - 1),
				   pen__object_name(&s, i));
		if (!CHECK(c < 0))
			break;
	}
	pen__objects_fini(&s);
}

/* Objects of several paths: sorted path by path, and then left in order. */
static void add_path(struct pen_objects *s, const char *dir,
		     const char *const *names)
{
	const uint64_t from = s->nobj;
	uint32_t d;

	CHECK_EQ(pen__objects_add_dir(s, dir, 1, 0, &d), 0);
	for (; *names; names++)
		CHECK_EQ(pen__objects_add(s, d, *names, 10, 0), 0);
	pen__objects_sort_from(s, from);
}

static void test_join(void)
{
	static const char *const yx[] = { "y", "x", "y", NULL };
	static const char *const c[] = { "c", NULL }, *const b[] = { "b",
								     NULL };
	struct pen_objects s = { 0 };
	uint32_t twice = 99;
	uint64_t order;

	add_path(&s, "q", yx);
	CHECK_EQ(s.nobj, 2);
	CHECK_EQ(s.total_bytes, 20);
	add_path(&s, "p", c);
	add_path(&s, "q", b);
	CHECK_EQ(pen__objects_join(&s, &twice), 0);
	CHECK_EQ(s.ndir, 2);
	path_is(&s, 0, "q/x");
	path_is(&s, 1, "q/y");
	path_is(&s, 2, "p/c");
	path_is(&s, 3, "q/b");
	order = s.order;
	CHECK(order != 0);
	pen__mem_fail_nth(3, true); /* directories can do without */
	CHECK_EQ(pen__objects_join(&s, &twice), PEN_ENOMEM);
	pen__mem_fail_nth(0, false);
	CHECK_EQ(twice, 99);
	add_path(&s, "q", c + 1); /* none */
	CHECK_EQ(pen__objects_join(&s, &twice), 0);
	CHECK_EQ(s.order, order);
	add_path(&s, "q", yx);
	CHECK_EQ(pen__objects_join(&s, &twice), PEN_EINVAL);
	path_is(&s, twice, "q/x");
	pen__objects_fini(&s);
}

/* Another order is another hash, and the sorted one has none. */
static void test_order(void)
{
	static const char *const name[3][2] = { { "a" }, { "b" }, { "c" } };
	static const uint8_t to[6][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
		{ 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 }
	};
	uint64_t order[6];

	for (int i = 0; i < 6; i++) {
		struct pen_objects s = { 0 };
		uint32_t twice;

		for (int j = 0; j < 3; j++)
			add_path(&s, "d", name[to[i][j]]);
		CHECK_EQ(pen__objects_join(&s, &twice), 0);
		order[i] = s.order;
		for (int j = 0; j < i; j++)
			CHECK(order[j] != order[i]);
		pen__objects_fini(&s);
	}
	CHECK_EQ(order[0], 0);
}

static void test_path(void)
{
	struct pen_objects s = { 0 };
	char buf[8] = "", one[1];
	uint32_t d;

	CHECK_EQ(pen__objects_add_dir(&s, "abc", 0, 0, &d), 0);
	CHECK_EQ(pen__objects_add(&s, d, "def", 0, 0), 0);
	CHECK_EQ(pen__objects_add(&s, d, "defg", 0, 0), 0);
	CHECK(pen__object_path(&s, 0, buf, sizeof(buf)));
	CHECK_STR(buf, "abc/def");
	CHECK(!pen__object_path(&s, 1, buf, sizeof(buf)));
	CHECK_STR(buf, "abc/def");
	CHECK(!pen__object_path(&s, 0, one, 1));
	CHECK_STR(one, "");
	CHECK(!pen__object_path(&s, 0, NULL, 0));
	pen__objects_fini(&s);
}

static void test_limits(void)
{
	struct pen_objects s = { 0 };
	uint32_t d;

	CHECK_EQ(pen__objects_add_dir(&s, "d", 0, 0, &d), 0);
	CHECK_EQ(pen__objects_add(&s, d, "a", UINT64_MAX, 0), 0);
	CHECK_EQ(pen__objects_add(&s, d, "b", 1, 0), PEN_EINVAL);
	s.total_bytes = 0;
	s.nobj = UINT32_MAX;
	CHECK_EQ(pen__objects_add(&s, d, "b", 1, 0), PEN_EINVAL);
	s.nobj = 1;
	s.ndir = UINT32_MAX;
	CHECK_EQ(pen__objects_add_dir(&s, "e", 0, 0, &d), PEN_EINVAL);
	s.ndir = 1;
	pen__objects_fini(&s);
}

/* A failed add changes nothing; a sort without memory still sorts. */
static void test_nomem(void)
{
	struct pen_objects s = { 0 };
	uint32_t d, e;

	pen__mem_fail_nth(1, true);
	CHECK_EQ(pen__objects_add_dir(&s, "d", 0, 0, &d), PEN_ENOMEM);
	pen__mem_fail_nth(0, false);
	CHECK_EQ(pen__objects_add_dir(&s, "e", 0, 0, &e), 0);
	CHECK_EQ(pen__objects_add_dir(&s, "d", 0, 0, &d), 0);
	pen__mem_fail_nth(1, true);
	CHECK_EQ(pen__objects_add(&s, d, "x", 1, 0), PEN_ENOMEM);
	CHECK_EQ(s.nobj, 0);
	CHECK_EQ(s.total_bytes, 0);
	pen__mem_fail_nth(0, false);
	CHECK_EQ(pen__objects_add(&s, e, "x", 1, 0), 0);
	CHECK_EQ(pen__objects_add(&s, d, "x", 1, 0), 0);
	pen__mem_fail_nth(1, true);
	pen__objects_sort(&s);
	pen__mem_fail_nth(0, false);
	path_is(&s, 0, "d/x");
	path_is(&s, 1, "e/x");
	pen__objects_fini(&s);
}

static void test_borrowed(void)
{
	char names[] = "dir\0name";
	struct pen_object o = { .size = 7, .name = 4 };
	struct pen_dir d = { .name = 0 };
	struct pen_objects s = { .obj = &o,
				 .dir = &d,
				 .names = names,
				 .nobj = 1,
				 .ndir = 1,
				 .nnames = 9,
				 .total_bytes = 7,
				 .borrowed = true };

	pen__objects_sort(&s);
	path_is(&s, 0, "dir/name");
	pen__objects_fini(&s);
	CHECK(!s.obj);
}

int main(void)
{
	test_sort();
	test_empty();
	test_many();
	test_join();
	test_order();
	test_path();
	test_limits();
	test_nomem();
	test_borrowed();
	return test_end();
}
