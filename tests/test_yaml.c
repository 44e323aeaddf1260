/* Parsing of YAML: results, errors and their locations, and agreement with
 * PyYAML. */
#include "test.h"

#include "base/mem.h"
#include "emulate/yaml.h"

static bool read_text(struct pen_yaml *doc, const char *text, struct pen_err *e)
{
	*e = (struct pen_err){ 0 };
	return pen__yaml_read(doc, text, strlen(text), "f.yaml", e) == 0;
}

/* The document on one line. */
static void flows(const char *text, const char *want)
{
	struct pen_text t = { 0 };
	struct pen_yaml doc;
	struct pen_err e;

	if (!CHECK(read_text(&doc, text, &e))) {
		fprintf(stderr, "  %s: %s\n", e.where, e.msg);
		return;
	}
	pen__yaml_flow(doc.root, &t);
	CHECK_STR(t.p, want);
	pen__text_fini(&t);
	pen__yaml_fini(&doc);
}

static void good(void)
{
	flows("a: 1\nb: two\n", "{a: 1, b: two}");
	flows("a:\n  b:\n    c: [1, x, 'y z']\n", "{a: {b: {c: [1, x, 'y "
						  "z']}}}");
	flows("- 1\n- - 2\n  - 3\n", "[1, [2, 3]]");
	flows("a: ~\nb:\nc: null\nd: 'null'\ne: \"\"\n",
	      "{a: null, b: null, c: null, d: 'null', e: ''}");
	flows("a: yes\nb: 'yes'\nc: 0x10\nd: 1_000\n",
	      "{a: yes, b: 'yes', c: 0x10, d: 1_000}");
	flows("a: &x {b: 1}\nc: *x\n", "{a: {b: 1}, c: {b: 1}}");
	flows("a: &x 1\nb: *x\nc: &x 2\nd: *x\n", "{a: 1, b: 1, c: 2, d: 2}");
	flows("base: &b {x: 1, w: 2}\nz: {<<: *b, w: 3}\n",
	      "{base: {x: 1, w: 2}, z: {w: 3, x: 1}}");
	flows("a: &a {x: 1}\nb: &b {x: 2, w: 2}\nc: {<<: [*a, *b], z: 3}\n",
	      "{a: {x: 1}, b: {x: 2, w: 2}, c: {z: 3, x: 1, w: 2}}");
	flows("a: |\n  two\n  lines\n", "{a: \"two\\x0alines\\x0a\"}");
	flows("a: !!str 5\nb: !!int 6\n", "{a: '5', b: 6}");
	flows("--- # a comment\na: 1\n...\n", "{a: 1}");
	flows("\xef\xbb\xbf"
	      "a: 1\n",
	      "{a: 1}");
	flows("{}", "{}");
	flows("a: 1\r\nb: 2\r\n", "{a: 1, b: 2}");
}

static void refused(const char *text, const char *where, const char *what)
{
	struct pen_yaml doc;
	struct pen_err e;

	if (!CHECK(!read_text(&doc, text, &e))) {
		fprintf(stderr, "  taken: %s\n", text);
		pen__yaml_fini(&doc);
		return;
	}
	CHECK_EQ(e.code, PEN_EINVAL);
	CHECK_STR(e.where, where);
	if (!CHECK(strstr(e.msg, what)))
		fprintf(stderr, "  '%s' lacks '%s'\n", e.msg, what);
	CHECK(!strchr(e.msg, '\n'));
}

static void bad(void)
{
	refused("", "f.yaml", "is empty");
	refused("# nothing\n\n", "f.yaml", "is empty");
	refused("a:\n\tb: 1\n", "f.yaml:2:1", "indented with a tab");
	refused("a:\n  b: 1\n\tc: 2\n", "f.yaml:3:1", "indented with a tab");
	refused("a:\n  b: 1\n c: 2\n", "f.yaml:3:2", "check the indentation");
	refused("a:\n  b: 1\n   c: 2\n", "f.yaml:3:5", "unexpected ':'");
	refused("a: b: c\n", "f.yaml:1:5", "unexpected ':'");
	refused("a: 1\nb\n", "f.yaml:3:1", "missing ':'");
	refused("a: \"x\n", "f.yaml:1:4", "opened here is not closed");
	refused("a:\n  - [1, 2\n", "f.yaml:2:5", "opened here is not closed");
	refused("a: {b: 1 c: 2}\n", "f.yaml:1:11", "");
	refused("a: 1\nb: 2\na: 3\n", "f.yaml:3:1",
		"'a' is set twice, first in line 1");
	refused("a: {b: 1, b: 2}\n", "f.yaml:1:11", "'b' is set twice");
	refused("a: \xff\n", "f.yaml:1:4", "not UTF-8");
	refused("a: 1\nb: \xc3\x28\n", "f.yaml:2:5", "not UTF-8");
	refused("a: \x01\n", "f.yaml:1:4", "control");
	refused("a: \"\\0\"\n", "f.yaml:1:4", "NUL");
	refused("a: *x\n", "f.yaml:1:4", "no complete anchor '&x'");
	refused("a: &x [1, *x]\n", "f.yaml:1:11", "no complete anchor '&x'");
	refused("a: !ruby/object x\n", "f.yaml:1:4", "tags");
	refused("a: !!python/object:os.system x\n", "f.yaml:1:4", "tags");
	refused("? [a]\n: b\n", "f.yaml:1:3", "a key must be text");
	refused("'': 1\n", "f.yaml:1:1", "missing key");
	refused("a: 1\n---\nb: 2\n", "f.yaml:2:1", "a second document");
	refused("a: {<<: 5}\n", "f.yaml:1:5", "'<<' needs a map");
	refused("a: {<<: [5]}\n", "f.yaml:1:5", "'<<' needs a map");
	refused("%YAML 3.0\n---\na: 1\n", "f.yaml:1:1", "incompatible");
}

/* Small text that expands to a large document. */
static void limits(void)
{
	struct pen_text t = { 0 };
	struct pen_yaml doc;
	struct pen_err e;

	for (int i = 0; i < 70; i++)
		pen__text_add(&t, "[");
	CHECK(!read_text(&doc, t.p, &e));
	CHECK(strstr(e.msg, "64 levels"));
	t.n = 0;
	pen__text_add(&t, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
	for (int i = 1; i < 12; i++)
		pen__text_add(&t, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d]\n",
			      i, i, i - 1, i - 1, i - 1, i - 1, i - 1);
	CHECK(!read_text(&doc, t.p, &e));
	CHECK(strstr(e.msg, "50,000 values"));
	t.n = 0;
	for (int i = 0; i < 1001; i++)
		pen__text_add(&t, "k%d: 1\n", i);
	CHECK(!read_text(&doc, t.p, &e));
	CHECK_STR(e.where, "f.yaml:1001:1");
	CHECK(strstr(e.msg, "1,000 keys"));
	t.n = 0;
	for (int i = 0; i < 65; i++)
		pen__text_add(&t, "- &a%d 1\n", i);
	CHECK(!read_text(&doc, t.p, &e));
	CHECK(strstr(e.msg, "64 anchors"));
	t.n = 0;
	while (t.n <= 1 << 20)
		pen__text_add(&t, "# a comment, and another one, and more\n");
	CHECK(!read_text(&doc, t.p, &e));
	CHECK(strstr(e.msg, "1 MiB"));
	pen__text_fini(&t);
}

static const char *const texts[] = {
	"plain",
	"yes",
	"No",
	"off",
	"null",
	"~",
	"1",
	"1.5",
	"1e3",
	"0x10",
	"1_000",
	"a: b",
	"a #b",
	"#a",
	"- a",
	"it's",
	"\"q\"",
	" lead",
	"",
	"a/b.c",
	"./x",
	"../x",
	"@x",
	"%x",
	"[a]",
	"{a}",
	"&a",
	"*a",
	"!a",
	"|",
	"tab\there",
	"nl\nx",
	"\xc3\xa4",
	"trail ",
	"y",
	"=",
	"2026-01-01",
	"1:30",
	".5",
	"-",
	"?",
	"a:",
	"\xc2\x85",
	"a\xe2\x80\xa8",
	"\xef\xbb\xbf",
	"\x01",
	"\\",
	"'",
};
#define NTEXTS (sizeof(texts) / sizeof(texts[0]))

/* PyYAML counts the scalars, those that are text, and their characters. */
static void ask_pyyaml(const char *want)
{
	char line[256] = "";
	FILE *py = popen("/usr/bin/python3 -c 'import yaml\n"
			 "v = yaml.safe_load(open(\"quoting.yaml\", "
			 "encoding=\"utf-8\"))\n"
			 "print(len(v), all(isinstance(x, str) for x in v), "
			 "sum(map(len, v)))' 2>&1",
			 "r");
	bool there = false;

	if (!CHECK(py))
		return;
	while (fgets(line, sizeof(line), py))
		there = !strstr(line, "No module") &&
			!strstr(line, "not found");
	pclose(py);
	if (there)
		CHECK_STR(line, want);
}

/* Scalars that must be quoted to stay text. */
static void quoting(void)
{
	struct pen_text t = { 0 }, list = { 0 };
	struct pen_err e = { 0 };
	size_t sum = 0;
	char want[64];

	for (size_t i = 0; i < NTEXTS; i++) {
		struct pen_yaml doc;

		t.n = 0;
		pen__text_add(&t, "k: ");
		pen__yaml_put_str(&t, texts[i]);
		if (CHECK(read_text(&doc, t.p, &e))) {
			CHECK_STR(doc.root->item[0].node->text, texts[i]);
			pen__yaml_fini(&doc);
		}
		pen__text_add(&list, "- %s\n", t.p + 3);
		sum += strlen(texts[i]);
	}
	CHECK_EQ(pen__text_save(&list, "quoting.yaml", &e), 0);
	pen__text_fini(&list);
	pen__text_fini(&t);
	/* four strings contain characters of two or three bytes */
	snprintf(want, sizeof(want), "%zu True %zu\n", NTEXTS, sum - 6);
	ask_pyyaml(want);
}

static void text_or_not(void)
{
	static const char *const bad[] = { "\xff",
					   "a\xc3",
					   "\xc0\x80",
					   "\xed\xa0\x80",
					   "\xf4\x90\x80\x80",
					   "\xe2\x82",
					   "\x80" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!pen__yaml_is_text(bad[i]));
	for (size_t i = 0; i < NTEXTS; i++)
		CHECK(pen__yaml_is_text(texts[i]));
	CHECK(pen__yaml_is_text("\xf0\x9f\x98\x80"));
}

static void memory(void)
{
	static const char text[] = "a: &x {b: 1, c: [1, 2, 3]}\n"
				   "d: {<<: *x, e: 'f'}\n";
	struct pen_yaml doc;
	struct pen_err e;
	bool done = false;
	uint64_t nth = 1;

	for (; !done && nth < 1000; nth++) {
		pen__mem_fail_nth(nth, false);
		done = read_text(&doc, text, &e);
		pen__mem_fail_nth(0, false);
		if (done)
			pen__yaml_fini(&doc);
		else
			CHECK_EQ(e.code, PEN_ENOMEM);
	}
	CHECK(done);
	CHECK(nth > 2); /* at least one did fail */
}

int main(void)
{
	good();
	bad();
	limits();
	quoting();
	text_or_not();
	memory();
	return test_end();
}
