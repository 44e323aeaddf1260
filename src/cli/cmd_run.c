/*
 * run: emulates the I/O of a training job described by a workload, and reports
 * accelerator utilisation. Under the name dlio_benchmark it takes the arguments
 * of that program and prints its lines.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/emulate.h"
#include "cli/live.h"
#include "emulate/draw.h"
#include "make/synth.h"
#include "penstock.h"

struct job {
	struct emulation e;
	bool dry, json, quiet, verbose;
	struct live live;
};

static const struct flag flags[] = {
	{ "--dry-run", NULL,
	  "print what would be done: files, steps, bytes, memory, time" },
	{ "--lenient", NULL, "report unknown keys as notes instead of errors" },
	{ "--config-dir", "DIR", "look for DIR/workload/NAME.yaml first" },
	{ "--json", NULL, "print the result file instead of text" },
	{ "--verbose", NULL, "print every line of the log" },
	{ "--quiet", NULL, "show no progress" },
	{ NULL, NULL, NULL },
};

/* --- progress --- */

static void say(void *arg, enum pen_log_level level, const char *line)
{
	struct job *j = arg;

	if (j->verbose || level != PEN_LOG_OUTPUT) {
		live_clear(&j->live);
		fprintf(stderr, "%s\n", line);
	}
}

static int tick(void *arg, const struct pen_progress *p)
{
	struct job *j = arg;

	if (interrupted())
		return 1;
	live_show(&j->live, p);
	return 0;
}

/* --- results --- */

/* saved: bytes of all checkpoints */
static void print_misses(const struct pen_config *c, uint64_t steps,
			 uint64_t saved)
{
	struct pen_text t = { 0 };
	struct pen_err err = { 0 };

	pen__run_misses(c, steps, &t);
	if (pen__synth_space(c->checkpoint.folder, saved, &err))
		pen__text_add(&t, "not all checkpoints fit: %s: %s\n",
			      shown(err.where), err.msg);
	for (const char *s = t.p; s && *s;) {
		const size_t n = strcspn(s, "\n");

		print_line(14, "note", "%.*s", (int)n, s);
		s += n + (s[n] == '\n');
	}
	pen__text_fini(&t);
}

static void print_plan(const struct job *j, const struct pen_plan_figures *p)
{
	const struct pen_config *c = &j->e.c;
	unsigned world = emulation_world(&j->e);

	print_line(2, NULL, "%s: %s, dry run", j->e.set.workload,
		   counted(world, "accelerator"));
	if (p->files_train)
		print_line(14, "data",
			   "%s training and %s evaluation files (%s), %s",
			   grouped(p->files_train), grouped(p->files_eval),
			   shown(c->dataset.format),
			   human_bytes((double)p->data_bytes));
	if (c->workflow.generate_data)
		print_line(14, "generate", "%s to generate, %s",
			   counted(p->files_missing, "file"),
			   human_bytes((double)p->generate_bytes));
	if (c->workflow.train)
		print_line(14, "train", "%s of %s of %s each",
			   counted(c->train.epochs, "epoch"),
			   counted(p->steps, "step"),
			   counted(c->reader.batch_size, "sample"));
	if (p->evals)
		print_line(14, "evaluate", "%s, %s", counted(p->evals, "time"),
			   counted(p->eval_steps, "step"));
	if (c->workflow.checkpoint)
		print_line(14, "checkpoints", "%s of %s each",
			   grouped(p->checkpoints),
			   human_bytes((double)p->checkpoint_bytes));
	if (c->workflow.train)
		print_line(14, "to be read", "%s per epoch, %s in total",
			   human_bytes((double)p->read_bytes_epoch),
			   human_bytes((double)p->read_bytes));
	print_line(14, "memory", "about %s for batches",
		   human_bytes((double)p->memory_bytes));
	if (p->needed_rate > 0)
		print_line(14, "time",
			   "%s of computation; a utilisation of %.0f %% needs "
			   "%s/s",
			   human_time(p->compute_s), 100 * c->au,
			   human_bytes(p->needed_rate));
	else
		print_line(14, "time", "%s of computation",
			   human_time(p->compute_s));
	print_misses(c, p->steps, p->checkpoints * p->checkpoint_bytes);
}

static void plan_json(const struct pen_plan_figures *p, struct pen_text *t)
{
	pen__json_open(t, NULL, '{');
	pen__json_str(t, "schema", "penstock.plan/1");
	pen__json_int(t, "files_train", p->files_train);
	pen__json_int(t, "files_eval", p->files_eval);
	pen__json_int(t, "files_missing", p->files_missing);
	pen__json_int(t, "steps_per_epoch", p->steps);
	pen__json_int(t, "evaluations", p->evals);
	pen__json_int(t, "eval_steps", p->eval_steps);
	pen__json_int(t, "data_bytes", p->data_bytes);
	pen__json_int(t, "generate_bytes", p->generate_bytes);
	pen__json_int(t, "read_bytes_per_epoch", p->read_bytes_epoch);
	pen__json_int(t, "read_bytes", p->read_bytes);
	pen__json_int(t, "memory_bytes", p->memory_bytes);
	pen__json_int(t, "checkpoints", p->checkpoints);
	pen__json_int(t, "checkpoint_bytes", p->checkpoint_bytes);
	pen__json_num(t, "compute_s", p->compute_s);
	pen__json_num(t, "needed_bytes_per_s", p->needed_rate);
	pen__json_close(t, '}');
}

static int dry_run(struct job *j)
{
	struct pen_run r = { .set = &j->e.set,
			     .c = &j->e.c,
			     .comm = j->e.comm };
	struct pen_plan_figures p;
	struct pen_text t = { 0 };
	struct pen_err err = { 0 };

	if (pen__run_check(&r, &err) ||
	    pen__run_plan(&j->e.c, emulation_world(&j->e), &p, &err))
		return complain(&err);
	if (j->e.comm->rank)
		return EXIT_OK;
	if (j->json) {
		plan_json(&p, &t);
		if (text_out(&t, NULL))
			return EXIT_FAILED;
	} else {
		print_plan(j, &p);
	}
	if (!pen__run_plan_check(&r, emulation_world(&j->e), &p, &err))
		return EXIT_OK;
	fflush(stdout);
	return complain(&err);
}

static void print_epochs(const struct pen_run *r)
{
	size_t n = r->fig.nepochs;
	char label[32];

	for (size_t i = 0; i < n; i++) {
		if (n > 12 && i >= 5 && i + 5 < n) {
			if (i == 5)
				puts("  ...");
			continue;
		}
		snprintf(label, sizeof(label), "epoch %zu", i + 1);
		print_line(14, label, "utilisation %5.1f %%, %s samples/s",
			   r->fig.au[i], human_count(r->fig.throughput[i]));
	}
}

static void print_loading(const struct pen_run *r)
{
	const struct pen_figures *f = &r->fig;
	const double cached = pen__facts_cached(&f->facts);
	double s = f->train_s > 0 ? f->train_s : 1;

	/* rounded as in the summary below */
	print_line(14, "utilisation",
		   "%.1f %% of the time was computing (target %.0f %%: %s)",
		   pen__shown_au(f->au_all.mean, 100 * r->c->au),
		   100 * r->c->au, f->au_met ? "met" : "missed");
	if (f->nevals)
		print_line(14, "evaluations",
			   "%s, utilisation %.1f %%, %s samples/s",
			   grouped(f->nevals),
			   pen__shown_au(f->eval_au_all.mean, 100 * r->c->au),
			   human_count(f->eval_throughput_all.mean));
	print_line(14, "throughput",
		   "%s samples/s, %s/s delivered, %s/s read in %s",
		   human_count(f->throughput_all.mean),
		   human_bytes((double)f->payload_bytes / s),
		   human_bytes((double)f->read_bytes / s),
		   counted(f->nreads, "read"));
	print_line(14, "batch wait", "p50 %s, p99 %s, max %s",
		   human_time((double)pen__hist_percentile(&f->wait, 50) / 1e9),
		   human_time((double)pen__hist_percentile(&f->wait, 99) / 1e9),
		   human_time((double)f->wait.max / 1e9));
	/* unknown for stores that are not file systems */
	if (isfinite(cached))
		print_line(14, "page cache",
			   "delivered %.0f %% of the bytes; %s", 100 * cached,
			   r->rec.cache_state);
	else
		print_line(14, "page cache", "%s", r->rec.cache_state);
	print_line(14, "loader", "%s (%s), %s, prefetch depth %s", r->rec.store,
		   r->rec.store_reason, counted(r->rec.nthreads, "thread"),
		   counted(r->rec.prefetch, "batch"));
}

static void print_checkpoints(const struct pen_run *r)
{
	const struct pen_figures *f = &r->fig;
	double gib = 1 << 30;

	if (f->nsaves)
		print_line(14, "saved", "%zu of %s, %s each, %s/s%s", f->nsaves,
			   human_bytes((double)r->rec.checkpoint_bytes),
			   human_time(f->save_time.mean),
			   human_bytes(f->save_rate.mean * gib),
			   r->c->checkpoint.fsync ? " with fsync" : "");
	if (f->nloads)
		print_line(14, "read back", "%zu, %s each, %s/s%s", f->nloads,
			   human_time(f->load_time.mean),
			   human_bytes(f->load_rate.mean * gib),
			   r->c->checkpoint.verify ? ", all bytes verified"
						   : "");
}

static void print_result(const struct job *j, const struct pen_run *r)
{
	const struct pen_config *c = r->c;
	struct pen_text words = { 0 };

	if (c->workflow.train)
		print_line(2, NULL, "%s: %s, %s of %s of %s", j->e.set.workload,
			   counted(r->rec.world, "emulated accelerator"),
			   counted(c->train.epochs, "epoch"),
			   counted(r->rec.steps_per_epoch, "step"),
			   counted(c->reader.batch_size, "sample"));
	else
		print_line(2, NULL, "%s: %s", j->e.set.workload,
			   counted(r->rec.world, "emulated accelerator"));
	if (r->rec.generate_s > 0)
		print_line(14, "generated", "%s, %s in %s (%s already existed)",
			   counted(r->rec.generated_files, "file"),
			   human_bytes((double)r->rec.generated_bytes),
			   human_time(r->rec.generate_s),
			   grouped(r->rec.kept_files));
	if (r->fig.nepochs) {
		print_epochs(r);
		print_loading(r);
	}
	print_checkpoints(r);
	if (c->workflow.train || c->workflow.checkpoint) {
		print_line(14, "memory", "%s peak",
			   human_bytes((double)r->rec.peak_memory));
		print_line(14, "results", "%s/result.json", r->dir);
		pen__summary(&r->rec, &r->fig, &words);
		if (words.p) {
			fputs("\n  Summary:", stdout);
			print_wrapped(stdout, words.p, 10, 2);
		}
		pen__text_fini(&words);
	}
	if (r->rec.partial)
		puts("  (interrupted: these are the figures so far)");
}

/* Prints the result file verbatim. */
static int print_file(const char *dir)
{
	struct pen_err err = { 0 };
	struct pen_text t = { 0 };
	char path[4200], buf[65536];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/result.json", dir);
	f = fopen(path, "re");
	while (f && (n = fread(buf, 1, sizeof(buf), f)) > 0)
		pen__text_put(&t, buf, n);
	if (!f || ferror(f)) {
		pen__fail_sys(&err, errno, path, "cannot read the result");
		if (f)
			fclose(f);
		pen__text_fini(&t);
		return complain(&err);
	}
	fclose(f);
	return text_out(&t, NULL);
}

/* A run that only generated data has no result file. */
static int generated_json(const struct pen_run *r)
{
	struct pen_text t = { 0 };

	pen__json_open(&t, NULL, '{');
	pen__json_str(&t, "schema", "penstock.generate/1");
	pen__json_bool(&t, "partial", r->rec.partial);
	pen__json_int(&t, "generated_files", r->rec.generated_files);
	pen__json_int(&t, "generated_bytes", r->rec.generated_bytes);
	pen__json_int(&t, "kept_files", r->rec.kept_files);
	pen__json_num(&t, "generate_s", r->rec.generate_s);
	pen__json_close(&t, '}');
	return text_out(&t, NULL);
}

static int show(const struct job *j, const struct pen_run *r)
{
	bool generate_only = !r->c->workflow.train &&
			     !r->c->workflow.checkpoint;

	if (j->json)
		return generate_only ? generated_json(r) : print_file(r->dir);
	if (!j->verbose)
		print_result(j, r);
	return EXIT_OK;
}

static int do_run(struct job *j, const char *base_dir)
{
	struct pen_run r = { .set = &j->e.set,
			     .c = &j->e.c,
			     .comm = j->e.comm,
			     .base_dir = base_dir,
			     .tick = tick,
			     .arg = j,
			     .stop = interrupt_asked,
			     .log = { .say = say, .arg = j, .fd = -1 } };
	struct pen_err err = { 0 };
	int rc, out = EXIT_OK;

	live_start(&j->live, j->quiet || j->e.comm->rank, j->e.comm->size);
	rc = pen__run(&r, &err);
	live_clear(&j->live);
	if (rc && rc != PEN_ECLOSED)
		out = complain(&err);
	else if (!j->e.comm->rank)
		out = show(j, &r);
	if (rc == PEN_ECLOSED)
		out = interrupted() ? 128 + interrupted() : EXIT_INTR;
	pen__run_fini(&r);
	return out;
}

/* --- arguments --- */

static int take_flag(struct job *j, const struct args *a)
{
	if (!strcmp(a->key, "--dry-run"))
		j->dry = true;
	else if (!strcmp(a->key, "--json"))
		j->json = true;
	else if (!strcmp(a->key, "--verbose"))
		j->verbose = true;
	else if (!strcmp(a->key, "--quiet"))
		j->quiet = true;
	else
		return emulation_arg(&j->e, a, ARG_FLAG);
	return -1;
}

static int run_run(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_run, .argc = argc, .argv = argv };
	struct job j = { 0 };
	int kind, rc = emulation_init(&j.e);

	while (rc < 0 && (kind = args_next(&a)) != ARG_END)
		rc = kind == ARG_BAD	? EXIT_USAGE
		     : kind == ARG_FLAG ? take_flag(&j, &a)
					: emulation_arg(&j.e, &a, kind);
	if (rc < 0)
		rc = emulation_open(&j.e, "run");
	if (rc < 0 && j.e.c.workflow.query)
		rc = emulation_query(&j.e);
	if (rc < 0)
		rc = j.dry ? dry_run(&j) : do_run(&j, "runs");
	emulation_close(&j.e);
	return rc;
}

/* --- DLIO's command line, in Hydra's syntax --- */

static void dlio_help(void)
{
	puts("usage: dlio_benchmark [workload=NAME] [++workload.KEY=VALUE ...] "
	     "[hydra.run.dir=DIR]\n                      [--config-dir DIR] "
	     "[--cfg job]\n\nThis is penstock as a drop-in replacement for "
	     "DLIO's benchmark. See `penstock run --help`;\n`penstock "
	     "workloads` lists the workloads, `penstock config NAME` all "
	     "keys.");
}

/* -c job, --cfg=job, -cd DIR: how many arguments it took, or 0. */
static int hydra_flag(struct args *a, bool *config)
{
	const char *arg = a->argv[a->at];
	const char *next = a->at + 1 < a->argc ? a->argv[a->at + 1] : NULL;

	if (!strncmp(arg, "--cfg=", 6) || !strncmp(arg, "-c=", 3)) {
		*config = true;
		return 1;
	}
	if (!strcmp(arg, "--cfg") || !strcmp(arg, "-c")) {
		*config = true;
		return next ? 2 : 1;
	}
	if (!strcmp(arg, "--resolve")) /* always resolved here */
		return 1;
	snprintf(a->key, sizeof(a->key), "--config-dir");
	a->value = !strncmp(arg, "-cd=", 4) ? arg + 4 : next;
	if (!strncmp(arg, "-cd=", 4))
		return 1;
	return !strcmp(arg, "-cd") && next ? 2 : 0;
}

static int dlio_arg(struct job *j, struct args *a, bool *config)
{
	const char *arg = a->argv[a->at];
	int kind, n = hydra_flag(a, config);

	if (n) {
		a->at += n;
		if (!strncmp(arg, "-cd", 3))
			return emulation_arg(&j->e, a, ARG_FLAG);
		return -1;
	}
	kind = args_next(a);
	return kind == ARG_BAD	  ? EXIT_USAGE
	       : kind == ARG_FLAG ? take_flag(j, a)
				  : emulation_arg(&j->e, a, kind);
}

/* Options that need no workload. */
static bool dlio_tells(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			dlio_help();
			return true;
		}
		if (!strcmp(argv[i], "--version")) {
			printf("dlio_benchmark (penstock %s)\n", pen_version());
			return true;
		}
	}
	return false;
}

/* Prints the config below `workload`, as Hydra does. */
static int print_config(const struct job *j)
{
	struct pen_text t = { 0 }, in = { 0 };
	const char *p;

	if (j->e.comm->rank)
		return EXIT_OK;
	pen__config_print(&j->e.c, &j->e.set, false, &t);
	pen__text_add(&in, "workload:\n");
	for (p = t.p; p && *p;) {
		size_t n = strcspn(p, "\n");

		pen__text_add(&in, "  %.*s\n", (int)n, p);
		p += n + (p[n] == '\n');
	}
	in.failed |= t.failed;
	pen__text_fini(&t);
	return text_out(&in, NULL);
}

int run_dlio(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_run, .argc = argc, .argv = argv };
	struct job j = { .verbose = true };
	bool config = false;
	int rc;

	if (dlio_tells(argc, argv))
		return EXIT_OK;
	rc = emulation_init(&j.e);
	j.e.set.lenient = true;
	while (rc < 0 && a.at < argc)
		rc = dlio_arg(&j, &a, &config);
	if (rc < 0 && !j.e.name && !j.e.set.workload)
		j.e.name = "default";
	if (rc < 0)
		rc = emulation_open(&j.e, "dlio_benchmark");
	if (rc < 0 && config)
		rc = print_config(&j);
	if (rc < 0 && j.e.c.workflow.query)
		rc = emulation_query(&j.e);
	if (rc < 0)
		rc = j.dry ? dry_run(&j) : do_run(&j, "hydra_log");
	emulation_close(&j.e);
	return rc;
}

static const char *const examples[] = {
	"penstock run unet3d_small",
	"a small medical-imaging job: generates its data, trains and prints a "
	"summary",
	"penstock run unet3d_h100 dataset.num_files_train=42 --dry-run",
	"what the run would read, and the storage bandwidth it needs",
	"penstock run resnet50_small accelerators=4 reader.read_threads=2",
	"four emulated accelerators in this process",
	"mpirun -n 4 penstock run cosmoflow_small",
	"one emulated accelerator per rank",
	"penstock run my.yaml ++workload.train.epochs=2",
	"a custom workload, with an argument in DLIO's syntax",
	NULL,
};

const struct command pen__cmd_run = {
	.name = "run",
	.ranks = true,
	.args = "WORKLOAD|FILE [key=value ...] [flags]",
	.summary = "emulate the I/O of a training job and measure utilisation",
	.about = "Performs the I/O of a training job: generates the data if "
		 "the workload asks for it, loads batches, waits as long as an "
		 "accelerator would compute, and writes checkpoints. `penstock "
		 "workloads` lists the workloads, `penstock config NAME` all "
		 "keys and values. Results are written to runs/NAME/TIME.",
	.flags = flags,
	.examples = examples,
	.run = run_run,
};
