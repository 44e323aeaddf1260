/* inspect: what is in a data set, without loading it. */
#include <string.h>

#include "base/team.h"
#include "cli/cli.h"
#include "engine/dataset.h"

static const struct flag flags[] = {
	{ "--json", NULL, "for programs" },
	{ NULL, NULL, NULL },
};

struct view {
	const struct pen_dataset *ds;
	struct pen_text *json; /* NULL: text */
	bool advice;	       /* which of the two is shown now */
	uint64_t nadvice;
};

static void show_fact(void *arg, const char *name, const char *value)
{
	struct view *v = arg;

	if (v->advice)
		return;
	if (v->json)
		pen__json_str(v->json, name, value);
	else
		printf("  %-14s %s\n", shown(name), shown(value));
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
		printf("  note: %s\n", shown(text));
}

static void describe(struct view *v, bool advice)
{
	struct pen_describe d = { v, show_fact, show_advice };
	const struct pen_format *f = v->ds->format;

	v->advice = advice;
	if (f->ops->describe)
		f->ops->describe(f, &d);
}

static void engine_advice(struct view *v)
{
	const struct pen_dataset *ds = v->ds;
	uint64_t n = ds->objs.nobj;

	if (n > 10000 && ds->objs.total_bytes / n < 65536)
		show_advice(v, "many small files: opening them costs more than "
			       "reading; one file with many samples loads "
			       "faster");
	if (ds->ix.nbad)
		show_advice(v, "some files could not be indexed: penstock "
			       "verify names them");
}

static void sizes(const struct pen_dataset *ds, uint64_t *least, uint64_t *most)
{
	*least = UINT64_MAX;
	*most = 0;
	for (uint64_t i = 0; i < ds->objs.nobj; i++) {
		uint64_t n = ds->objs.obj[i].size;

		*least = n < *least ? n : *least;
		*most = n > *most ? n : *most;
	}
}

static void print_text(struct view *v)
{
	const struct pen_dataset *ds = v->ds;
	uint64_t least, most;

	sizes(ds, &least, &most);
	printf("%s\n  %-14s %s\n  %-14s %s", shown(ds->spec->paths[0]),
	       "format", ds->format->ops->name, "files",
	       grouped(ds->objs.nobj));
	printf(", %s", human_bytes((double)ds->objs.total_bytes));
	if (least != most)
		printf(" (%s to %s each)", human_bytes((double)least),
		       human_bytes((double)most));
	printf("\n  %-14s %s", "samples", grouped(ds->ix.pub.nsamples));
	if (ds->ix.pub.per_object)
		printf(" (%s per file)", grouped(ds->ix.pub.per_object));
	puts("");
	for (uint32_t i = 0; i < ds->format->nfields; i++) {
		const struct pen_field *f = &ds->format->field[i];

		printf("  field %-8s %s %s, %s%s\n", shown(f->name),
		       pen_dtype_name(f->dtype), shape_text(f->shape, f->ndim),
		       memchr(f->shape, 0xff, f->ndim * 8) ? "up to " : "",
		       human_bytes((double)f->max_bytes));
	}
	describe(v, false);
	printf("  %-14s %s (%s)\n", "store", ds->store->ops->name,
	       ds->why_store);
	printf("  %-14s %s, %s\n", "opened in",
	       human_time((double)ds->open_ns / 1e9),
	       ds->ix.from_cache ? "index from the cache" : "index built");
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
	pen__json_str(j, "path", ds->spec->paths[0]);
	pen__json_str(j, "format", ds->format->ops->name);
	pen__json_int(j, "objects", ds->objs.nobj);
	pen__json_int(j, "bytes", ds->objs.total_bytes);
	pen__json_int(j, "smallest_object_bytes", least);
	pen__json_int(j, "largest_object_bytes", most);
	pen__json_int(j, "samples", ds->ix.pub.nsamples);
	pen__json_open(j, "fields", '[');
	for (uint32_t i = 0; i < ds->format->nfields; i++) {
		const struct pen_field *f = &ds->format->field[i];

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
	pen__json_str(j, "store", ds->store->ops->name);
	pen__json_str(j, "store_reason", ds->why_store);
	pen__json_bool(j, "index_from_cache", ds->ix.from_cache);
	pen__json_num(j, "open_s", (double)ds->open_ns / 1e9);
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
	int kind, rc = -1;

	if (pen_spec_new(&spec, &err))
		return complain(&err);
	spec->stop = interrupt_flag();
	while (rc < 0 && (kind = args_next(&a)) != ARG_END) {
		if (kind == ARG_BAD)
			rc = EXIT_USAGE;
		else if (kind == ARG_FLAG)
			v.json = &j;
		else
			rc = spec_arg(spec, &a, kind);
	}
	if (rc < 0 && pen_dataset_open(&ds, spec, &err)) {
		rc = complain(&err);
		if (err.code == PEN_ECLOSED && interrupted())
			rc = 128 + interrupted();
	}
	if (rc < 0) {
		v.ds = ds;
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
	"format, samples, fields, and what is worth knowing about the layout",
	NULL,
};

const struct command pen__cmd_inspect = {
	.name = "inspect",
	.args = "PATH... [key=value ...] [--json]",
	.summary = "what is in a data set: samples, fields, layout",
	.about = "Opens a data set without loading it and prints its format, "
		 "samples, fields, shapes, types, sizes and compression, and "
		 "layout problems that cost loading speed.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_inspect,
};
