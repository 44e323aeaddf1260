/*
 * verify: reads everything once, in order, with all checks on, and names each
 * bad file and sample. Continues after errors.
 */
#include <string.h>

#include "cli/cli.h"

static const struct flag flags[] = {
	{ "--json", NULL, "print the result as JSON" },
	SANDBOX_FLAG,
	{ NULL, NULL, NULL },
};

/* Interval of checks for interrupts while waiting for a batch. */
#define LOOK_NS 50000000

struct found {
	struct pen_loader *l; /* NULL: interrupted while indexing */
	const char *path;
	uint64_t good, bytes, nbad;
	uint64_t nwrong;       /* part of nbad: warnings */
	struct pen_text *json; /* NULL: text */
	bool notes;	       /* showing notes instead of errors */
};

static void count_warning(void *arg, const struct pen_err *e)
{
	struct found *v = arg;

	v->nwrong += e->code != PEN_OK;
}

static int read_all(struct found *v, struct pen_err *err)
{
	struct pen_batch *b;
	struct progress p;
	struct pen_stats s;
	struct pen_dataset_info info;
	int rc = 0;

	progress_start(&p, "samples",
		       pen_dataset_nsamples(pen_loader_dataset(v->l)));
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
	pen_loader_stats(v->l, &s, sizeof(s));
	pen_dataset_get_info(pen_loader_dataset(v->l), &info, sizeof(info));
	v->nbad = s.nskipped + info.nbad;
	pen_dataset_warnings(pen_loader_dataset(v->l), v, count_warning);
	v->nbad += v->nwrong;
	return interrupted() || rc == PEN_END ? 0 : rc;
}

static void show_one(const struct found *v, const char *kind, const char *what,
		     uint64_t id, const struct pen_err *e)
{
	struct pen_text *j = v->json;

	if (j) {
		pen__json_open(j, NULL, '{');
		pen__json_str(j, "object", e->where);
		if (what)
			pen__json_int(j, what, id);
		json_code(j, e->number);
		pen__json_str(j, v->notes ? "note" : "error", e->msg);
		pen__json_close(j, '}');
	} else if (what) {
		printf("%s: %s %llu: %s: %s\n", kind, what,
		       (unsigned long long)id, shown(e->where), shown(e->msg));
	} else {
		printf("%s: %s: %s\n", kind, shown(e->where), shown(e->msg));
	}
}

static void show_warning(void *arg, const struct pen_err *e)
{
	const struct found *v = arg;

	if (v->notes == (e->code == PEN_OK))
		show_one(v, v->notes ? "note" : "bad", NULL, 0, e);
}

static void show_all_bad(struct found *v)
{
	const struct pen_dataset *ds;
	struct pen_err e;
	uint64_t id;

	v->notes = false;
	if (!v->l)
		return;
	ds = pen_loader_dataset(v->l);
	for (uint64_t i = 0; !pen_dataset_bad(ds, i, &id, &e); i++)
		show_one(v, "bad", NULL, 0, &e);
	pen_dataset_warnings(ds, v, show_warning);
	for (uint64_t i = 0; !pen_loader_skipped(v->l, i, &id, &e); i++)
		show_one(v, "bad", "sample", id, &e);
}

static void show_notes(struct found *v)
{
	v->notes = true;
	if (v->l)
		pen_dataset_warnings(pen_loader_dataset(v->l), v, show_warning);
}

static int report(struct found *v, bool json)
{
	struct pen_text j = { 0 };

	v->json = json ? &j : NULL;
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
		show_all_bad(v);
		pen__json_close(&j, ']');
		pen__json_open(&j, "notes", '[');
		show_notes(v);
		pen__json_close(&j, ']');
		pen__json_close(&j, '}');
		if (text_out(&j, NULL))
			return EXIT_FAILED;
	} else {
		show_all_bad(v);
		if (v->nbad > PEN_SKIPPED_KEPT)
			printf("... and more\n");
		show_notes(v);
		printf("%s: %s %s (%s), %s bad\n", shown(v->path),
		       counted(v->good, "sample"),
		       v->nwrong      ? "can be read"
		       : v->good == 1 ? "is good"
				      : "are good",
		       human_bytes((double)v->bytes), grouped(v->nbad));
		if (interrupted())
			printf("  (interrupted%s: the rest was not checked)\n",
			       v->l ? "" : " while indexing");
	}
	if (interrupted())
		return 128 + interrupted();
	return v->nbad ? EXIT_DATA : EXIT_OK;
}

/* In order, complete, and continuing after errors, whatever was set. */
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
	bool json = false, sandbox = false;
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
			json = true;
		else
			rc = spec_arg(spec, &a, kind);
	}
	if (rc < 0 &&
	    (pen_spec_check(spec, &err) || force_settings(spec, &err) ||
	     (sandbox && sandbox_enter(spec, argc, argv, &err)) ||
	     pen_loader_open(&v.l, spec, &err) || read_all(&v, &err)))
		rc = complain(&err);
	if (rc < 0 || (err.code == PEN_ECLOSED && interrupted())) {
		v.path = pen_spec_path(spec, 0);
		rc = report(&v, json);
	}
	pen_loader_close(v.l);
	pen_spec_free(spec);
	return rc;
}

static const char *const examples[] = {
	"penstock verify data/",
	"reads everything, checks lengths, shapes and checksums; exit code 3 "
	"if something is bad",
	NULL,
};

const struct command pen__cmd_verify = {
	.name = "verify",
	.args = "PATH... [key=value ...] [--json] [--sandbox]",
	.summary = "read and check everything, and name each bad sample",
	.about = "Reads all samples once, checks all lengths, shapes and "
		 "checksums, and names each bad file and sample. Continues "
		 "after errors; the exit code is 3 if there were any. Settings "
		 "of order, epochs and the last batch have no effect.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_verify,
};
