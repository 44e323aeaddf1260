/*
 * verify: reads everything once, in order, with all checks on, and names each
 * bad file and sample. It goes on after errors.
 */
#include <string.h>

#include "cli/cli.h"
#include "engine/loader.h"

static const struct flag flags[] = {
	{ "--json", NULL, "for programs" },
	{ NULL, NULL, NULL },
};

/* Interrupts are looked for this often while no batch comes. */
#define LOOK_NS 50000000

struct found {
	struct pen_loader *l; /* NULL: it was interrupted while it indexed */
	const char *path;
	uint64_t good, bytes, nbad;
};

static int read_all(struct found *v, struct pen_err *err)
{
	struct pen_batch *b;
	struct progress p;
	struct pen_stats s;
	int rc = 0;

	progress_start(&p, "samples", pen_dataset_nsamples(v->l->ds));
	while (!interrupted()) {
		rc = pen_loader_next_within(v->l, LOOK_NS, &b, err);
		if (rc == PEN_AGAIN)
			continue;
		if (rc)
			break;
		v->good += b->nsamples;
		for (uint32_t i = 0; i < b->ntensors; i++)
			v->bytes += b->tensors[i].nbytes;
		pen_batch_unref(b);
		progress_show(&p, v->good, (double)v->bytes);
	}
	progress_end(&p);
	pen_loader_stats(v->l, &s);
	v->nbad = s.nskipped + v->l->ds->ix.nbad;
	return interrupted() || rc == PEN_END ? 0 : rc;
}

static void show_bad(const struct found *v, struct pen_text *j,
		     const char *what, uint64_t id, const struct pen_err *e)
{
	if (j) {
		pen__json_open(j, NULL, '{');
		pen__json_str(j, "object", e->where);
		if (what)
			pen__json_int(j, what, id);
		pen__json_str(j, "error", e->msg);
		pen__json_close(j, '}');
	} else if (what) {
		printf("bad: sample %llu: %s: %s\n", (unsigned long long)id,
		       shown(e->where), shown(e->msg));
	} else {
		printf("bad: %s: %s\n", shown(e->where), shown(e->msg));
	}
	(void)v;
}

static void show_all_bad(const struct found *v, struct pen_text *j)
{
	const struct pen_index_data *ix;
	struct pen_err e;
	uint64_t id;

	if (!v->l)
		return;
	ix = &v->l->ds->ix;
	for (size_t i = 0; i < ix->nbad; i++)
		show_bad(v, j, NULL, 0, &ix->bad[i].err);
	for (uint64_t i = 0; !pen_loader_skipped(v->l, i, &id, &e); i++)
		show_bad(v, j, "sample", id, &e);
}

static int report(const struct found *v, bool json)
{
	struct pen_text j = { 0 };

	if (json) {
		pen__json_open(&j, NULL, '{');
		pen__json_str(&j, "schema", "penstock.verify/1");
		pen__json_bool(&j, "partial", interrupted());
		if (interrupted())
			pen__json_str(&j, "phase",
				      v->l ? "reading" : "indexing");
		pen__json_int(&j, "good_samples", v->good);
		pen__json_int(&j, "bad", v->nbad);
		pen__json_int(&j, "payload_bytes", v->bytes);
		pen__json_open(&j, "errors", '[');
		show_all_bad(v, &j);
		pen__json_close(&j, ']');
		pen__json_close(&j, '}');
		if (text_out(&j, NULL))
			return EXIT_FAILED;
	} else {
		show_all_bad(v, NULL);
		if (v->nbad > PEN_SKIPPED_KEPT)
			printf("... and more\n");
		printf("%s: %s samples are good (%s), %s bad\n", shown(v->path),
		       grouped(v->good), human_bytes((double)v->bytes),
		       grouped(v->nbad));
		if (interrupted())
			printf("  (interrupted%s: the rest is not known)\n",
			       v->l ? "" : " while indexing");
	}
	if (interrupted())
		return 128 + interrupted();
	return v->nbad ? EXIT_DATA : EXIT_OK;
}

/* In order, nothing left out, and on past errors, whatever was set. */
static int force_settings(struct pen_spec *s, struct pen_err *err)
{
	static const char *const set[] = {
		"on_error=skip", "epochs=1",	 "sampler=sequential",
		"tail=keep",	 "max_errors=0", "drop_last=false"
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(set) / sizeof(*set); i++)
		rc = pen_spec_parse(s, set[i], err);
	return rc;
}

static int run_verify(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_verify, .argc = argc, .argv = argv };
	struct pen_err err = { 0 };
	struct found v = { 0 };
	struct pen_spec *spec;
	bool json = false;
	int kind, rc = -1;

	if (pen_spec_new(&spec, &err))
		return complain(&err);
	spec->stop = interrupt_flag();
	while (rc < 0 && (kind = args_next(&a)) != ARG_END) {
		if (kind == ARG_BAD)
			rc = EXIT_USAGE;
		else if (kind == ARG_FLAG)
			json = true;
		else
			rc = spec_arg(spec, &a, kind);
	}
	if (rc < 0 && (force_settings(spec, &err) ||
		       pen_loader_open(&v.l, spec, &err) || read_all(&v, &err)))
		rc = complain(&err);
	if (rc < 0 || (err.code == PEN_ECLOSED && interrupted())) {
		v.path = spec->paths[0];
		rc = report(&v, json);
	}
	pen_loader_close(v.l);
	pen_spec_free(spec);
	return rc;
}

static const char *const examples[] = {
	"penstock verify data/",
	"reads all, checks lengths, shapes and checksums; exit code 3 when "
	"something is bad",
	NULL,
};

const struct command pen__cmd_verify = {
	.name = "verify",
	.args = "PATH... [key=value ...] [--json]",
	.summary = "read everything, check it, name each bad sample",
	.about = "Reads all samples once, checks every length, shape and "
		 "checksum there is, and names each bad file and sample. Goes "
		 "on after errors; the exit code is 3 when there were any.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_verify,
};
