/* inspect: describes a data set without loading it. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/team.h"
#include "cli/cli.h"

static const struct flag flags[] = {
	{ "--json", NULL, "print the result as JSON" },
	SANDBOX_FLAG,
	{ NULL, NULL, NULL },
};

struct view {
	const struct pen_dataset *ds;
	struct pen_dataset_info info;
	const char *path;
	struct pen_text *json; /* NULL: text */
	bool advice;	       /* showing advice instead of facts */
	uint64_t nadvice;
};

struct text {
	char s[1024];
};

/* Groups the digits of numbers in a text for people. */
static struct text grouped_in(const char *s)
{
	struct text out = { "" };

	for (size_t n, at = 0; *s && at < sizeof(out.s); s += n) {
		const char *as = s;

		n = strcspn(s, " ,");
		n += !n;
		if (n > 4 && n < 20 && strspn(s, "0123456789") == n)
			as = grouped(strtoull(s, NULL, 10));
		at += (size_t)snprintf(out.s + at, sizeof(out.s) - at, "%.*s",
				       as == s ? (int)n : 30, as);
	}
	return out;
}

/* Other facts may be names of files or classes. */
static bool is_count(const char *fact)
{
	static const char *const counts[] = {
		"genes", "non-zeros", "letters", "records", "data", "indices"
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		if (!strcmp(fact, counts[i]))
			return true;
	return false;
}

static void show_fact(void *arg, const char *name, const char *value)
{
	struct view *v = arg;

	if (v->advice)
		return;
	if (v->json)
		pen__json_str(v->json, name, value);
	else
		print_line(14, shown(name), "%s",
			   is_count(name) ? grouped_in(value).s : value);
}

static void show_advice(void *arg, const char *text)
{
	struct view *v = arg;

	if (!v->advice)
		return;
	v->nadvice++;
	if (v->json)
		pen__json_str(v->json, NULL, text);
	else
		print_line(5, "note:", "%s", grouped_in(text).s);
}

static void describe(struct view *v, bool advice)
{
	v->advice = advice;
	pen_dataset_describe(v->ds, v, show_fact, show_advice);
}

static void show_warning(void *arg, const struct pen_err *e)
{
	char text[sizeof(e->where) + sizeof(e->msg) + 16];

	snprintf(text, sizeof(text), "%s%s: %s", e->code ? "damaged: " : "",
		 e->where, e->msg);
	show_advice(arg, text);
}

static void engine_advice(struct view *v)
{
	const struct pen_dataset *ds = v->ds;
	uint64_t n = pen_dataset_nobjects(ds);

	if (n > 10000 && pen_dataset_nbytes(ds) / n < 65536)
		show_advice(v,
			    "many small files: opening costs more than "
			    "reading; one file with many samples loads faster");
	pen_dataset_warnings(ds, v, show_warning);
	if (v->info.nbad)
		show_advice(v, "some files could not be indexed; `penstock "
			       "verify` names them");
}

static void sizes(const struct pen_dataset *ds, uint64_t *least, uint64_t *most)
{
	char path[PATH_MAX];
	uint64_t n;

	*least = UINT64_MAX;
	*most = 0;
	for (uint64_t i = 0; i < pen_dataset_nobjects(ds); i++) {
		if (pen_dataset_object(ds, i, path, sizeof(path), &n))
			continue;
		*least = n < *least ? n : *least;
		*most = n > *most ? n : *most;
	}
}

static void print_text(struct view *v)
{
	const struct pen_dataset *ds = v->ds;
	uint64_t least, most;
	char each[128] = "";

	sizes(ds, &least, &most);
	puts(shown(v->path));
	print_line(14, "format", "%s", pen_dataset_format(ds));
	if (least != most)
		snprintf(each, sizeof(each), " (%s to %s each)",
			 human_bytes((double)least), human_bytes((double)most));
	print_line(14, "files", "%s, %s%s", grouped(pen_dataset_nobjects(ds)),
		   human_bytes((double)pen_dataset_nbytes(ds)), each);
	each[0] = '\0';
	if (v->info.per_object)
		snprintf(each, sizeof(each), " (%s per file)",
			 grouped(v->info.per_object));
	print_line(14, "samples", "%s%s", grouped(pen_dataset_nsamples(ds)),
		   each);
	for (uint32_t i = 0; i < pen_dataset_nfields(ds); i++) {
		const struct pen_field *f = pen_dataset_field(ds, i);
		struct pen_text label = { 0 };

		pen__text_add(&label, "field %s", shown(f->name));
		print_line(14, label.p ? label.p : "", "%s %s, %s%s",
			   pen_dtype_name(f->dtype),
			   shape_text(f->shape, f->ndim),
			   memchr(f->shape, 0xff, f->ndim * 8) ? "up to " : "",
			   human_bytes((double)f->max_bytes));
		pen__text_fini(&label);
	}
	describe(v, false);
	print_line(14, "store", "%s (%s)", pen_dataset_store(ds),
		   v->info.store_reason);
	print_line(14, "opened in", "%s, %s",
		   human_time((double)v->info.open_ns / 1e9),
		   v->info.index_cached ? "index from the cache"
					: "index built");
	describe(v, true);
	engine_advice(v);
}

static void print_json(struct view *v)
{
	const struct pen_dataset *ds = v->ds;
	struct pen_text *j = v->json;
	uint64_t least, most;

	sizes(ds, &least, &most);
	pen__json_open(j, NULL, '{');
	pen__json_str(j, "schema", "penstock.inspect/1");
	pen__json_str(j, "path", v->path);
	pen__json_str(j, "format", pen_dataset_format(ds));
	pen__json_int(j, "objects", pen_dataset_nobjects(ds));
	pen__json_int(j, "bytes", pen_dataset_nbytes(ds));
	pen__json_int(j, "smallest_object_bytes", least);
	pen__json_int(j, "largest_object_bytes", most);
	pen__json_int(j, "samples", pen_dataset_nsamples(ds));
	pen__json_open(j, "fields", '[');
	for (uint32_t i = 0; i < pen_dataset_nfields(ds); i++) {
		const struct pen_field *f = pen_dataset_field(ds, i);

		pen__json_open(j, NULL, '{');
		json_field(j, f);
		pen__json_int(j, "max_bytes", f->max_bytes);
		pen__json_close(j, '}');
	}
	pen__json_close(j, ']');
	pen__json_open(j, "facts", '{');
	describe(v, false);
	pen__json_close(j, '}');
	pen__json_open(j, "notes", '[');
	describe(v, true);
	engine_advice(v);
	pen__json_close(j, ']');
	pen__json_str(j, "store", pen_dataset_store(ds));
	pen__json_str(j, "store_reason", v->info.store_reason);
	pen__json_bool(j, "index_from_cache", v->info.index_cached);
	pen__json_num(j, "open_s", (double)v->info.open_ns / 1e9);
	pen__json_int(j, "peak_memory_bytes", pen__memory_peak());
	pen__json_close(j, '}');
}

static int run_inspect(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_inspect,
			  .argc = argc,
			  .argv = argv };
	struct pen_text j = { 0 };
	struct pen_err err = { 0 };
	struct pen_dataset *ds = NULL;
	struct view v = { 0 };
	struct pen_spec *spec;
	bool sandbox = false;
	int kind, rc = -1;

	if (pen_spec_new(&spec, &err))
		return complain(&err);
	pen_spec_on_stop(spec, interrupt_asked, NULL);
	while (rc < 0 && (kind = args_next(&a)) != ARG_END) {
		if (kind == ARG_BAD)
			rc = EXIT_USAGE;
		else if (kind == ARG_FLAG && !strcmp(a.key, "--sandbox"))
			sandbox = true;
		else if (kind == ARG_FLAG)
			v.json = &j;
		else
			rc = spec_arg(spec, &a, kind);
	}
	if (rc < 0 && (pen_spec_check(spec, &err) ||
		       (sandbox && sandbox_enter(spec, argc, argv, &err))))
		rc = complain(&err);
	if (rc < 0 && pen_dataset_open(&ds, spec, &err)) {
		rc = complain(&err);
		if (err.code == PEN_ECLOSED && interrupted())
			rc = 128 + interrupted();
	}
	if (rc < 0) {
		v.ds = ds;
		v.path = pen_spec_path(pen_dataset_spec(ds), 0);
		pen_dataset_get_info(ds, &v.info, sizeof(v.info));
		rc = EXIT_OK;
		if (v.json) {
			print_json(&v);
			rc = text_out(&j, NULL);
		} else {
			print_text(&v);
		}
	}
	pen_dataset_close(ds);
	pen_spec_free(spec);
	return rc;
}

static const char *const examples[] = {
	"penstock inspect data/",
	"format, samples, fields and notes on the layout",
	NULL,
};

const struct command pen__cmd_inspect = {
	.name = "inspect",
	.args = "PATH... [key=value ...] [--json] [--sandbox]",
	.summary = "describe a data set: samples, fields, layout",
	.about = "Opens a data set without loading it and prints its format, "
		 "samples, fields, shapes, types, sizes and compression, and "
		 "layout problems that slow loading down.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_inspect,
};
