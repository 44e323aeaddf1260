/*
 * load: iterates over a data set as a training job would, and reports
 * throughput, where the time goes and what it costs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/page_cache.h"
#include "base/rng.h"
#include "base/team.h"
#include "cli/load.h"
#include "comm/launch.h"
#include "experiment/experiment.h"
#include "quality/quality.h"

/* Interval of checks for interrupts while waiting for a batch. */
#define LOOK_NS 50000000
#define LEAST_PAYLOAD 1000000 /* enough to extrapolate to a GB */

static const struct flag flags[] = {
	{ "--json", NULL, "print the result as JSON instead of text" },
	{ "-o", "FILE", "also write the result as JSON to FILE" },
	{ "--batches", "N", "stop after N batches" },
	{ "--seconds", "S", "stop after S seconds" },
	{ "--checksum", NULL,
	  "print a checksum of all delivered bytes, independent of order, "
	  "store and threads" },
	{ "--quality", "[=FIELD]",
	  "print shuffle quality; with FIELD (one integer per sample) also by "
	  "that label" },
	{ "--drop-cache", NULL,
	  "drop the files from the page cache before the start" },
	{ "--quiet", NULL, "show no progress" },
	{ NULL, NULL, NULL },
};

/* Independent of the order of rows: each row is hashed with its id, and the
 * hashes are added. */
static uint64_t batch_sum(const struct pen_batch *b)
{
	uint64_t sum = 0;

	for (uint32_t t = 0; t < b->ntensors; t++) {
		const struct pen_tensor *x = &b->tensors[t];
		size_t size = pen_dtype_size(x->dtype);

		for (uint32_t r = 0; r < b->nsamples; r++) {
			size_t from = x->nbytes / b->nsamples * r, n, i;
			const uint8_t *p = x->data;
			uint64_t h = b->ids[r] * 64 + t + 1;

			n = x->nbytes / b->nsamples;
			if (x->offsets) {
				from = (size_t)x->offsets[r] * size;
				n = (size_t)(x->layout == PEN_PACKED
						     ? x->shapes[r]
						     : x->offsets[r + 1] -
							       x->offsets[r]) *
				    size;
			}
			for (i = 0; i + 8 <= n; i += 8) {
				uint64_t v;

				memcpy(&v, p + from + i, 8);
				h = (h ^ v) * 0x9e3779b97f4a7c15u;
				h ^= h >> 29;
			}
			for (; i < n; i++)
				h = (h ^ p[from + i]) * 0x9e3779b97f4a7c15u;
			sum += pen__mix64(h);
		}
	}
	return sum;
}

static int add_epoch(struct run *r, const struct epoch *e)
{
	struct epoch *all;

	if (!e->samples)
		return 0;
	all = pen__realloc(r->epoch, r->nepochs + 1, sizeof(*all));
	if (!all)
		return PEN_ENOMEM;
	r->epoch = all;
	r->epoch[r->nepochs++] = *e;
	return 0;
}

/* Updates the live view. */
static void watch(struct run *r, const struct epoch *e, uint64_t start,
		  uint64_t taken)
{
	const uint64_t epochs = pen_spec_number(
		pen_dataset_spec(pen_loader_dataset(r->l)), "epochs");
	struct pen_progress p = { .what = "epoch",
				  .part = (unsigned)r->nepochs + 1,
				  .parts = (unsigned)epochs,
				  .done = e->samples,
				  .total =
					  r->info.epoch_samples / r->info.world,
				  .unit = "samples",
				  .loader = r->l };

	if (r->max_batches || r->max_seconds > 0)
		p = (struct pen_progress){ .what = "loading", .loader = r->l };
	if (r->max_seconds > 0) {
		p.unit = "seconds";
		p.done = (pen__now_ns() - start) / 1000000000;
		p.total = (uint64_t)ceil(r->max_seconds);
	} else if (r->max_batches) {
		p.unit = "batches";
		p.done = taken;
		p.total = r->max_batches;
	}
	live_show(&r->live, &p);
}

/* Only the first of the processes started together shows progress. */
static void start_live(struct run *r)
{
	struct pen_launch by;
	int rank = 0, n = 1;

	if (r->comm) {
		rank = r->comm->rank;
		n = r->comm->size;
	} else if (!pen__comm_launch(&by, NULL) && by.rank >= 0) {
		rank = by.rank;
		n = by.size;
	}
	live_start(&r->live, r->quiet || rank, n);
}

static int iterate(struct run *r, struct pen_err *err)
{
	/* loading starts with the workers, not with the first next() */
	uint64_t start = r->info.start_ns, t0 = start, n = 0;
	uint64_t cpu, cpu0 = r->info.start_cpu_ns;
	struct epoch e = { 0 };
	struct pen_batch *b;
	int rc = 0;

	start_live(r);
	load_facts_start(r);
	while (!interrupted() && (!r->max_batches || n < r->max_batches) &&
	       !(r->max_seconds > 0 &&
		 (double)(pen__now_ns() - start) / 1e9 >= r->max_seconds)) {
		rc = pen_loader_next_within(r->l, LOOK_NS, &b, err);
		if (r->live.on)
			watch(r, &e, start, n + !rc);
		if (rc == PEN_AGAIN)
			continue;
		if (rc == PEN_END) {
			uint64_t now = pen__now_ns();

			cpu = pen__cpu_ns();
			e.seconds = (double)(now - t0) / 1e9;
			e.cpu_s = (double)(cpu - cpu0) / 1e9;
			if (add_epoch(r, &e))
				return pen__fail_nomem(err, "epochs", 0);
			e = (struct epoch){ 0 };
			t0 = now;
			cpu0 = cpu;
			if (r->q)
				pen__quality_epoch(r->q);
			pen_loader_get_info(r->l, &r->info, sizeof(r->info));
			if (r->info.ended)
				break;
			continue;
		}
		if (rc)
			break;
		n++;
		e.samples += b->nsamples;
		for (uint32_t i = 0; i < b->ntensors; i++)
			e.bytes += b->tensors[i].nbytes;
		if (r->checksum)
			r->sum += batch_sum(b);
		rc = r->q ? pen__quality_batch(r->q, b, err) : 0;
		pen_batch_unref(b);
		if (rc)
			break;
	}
	load_facts_end(r);
	live_clear(&r->live);
	r->seconds = (double)(pen__now_ns() - start) / 1e9;
	cpu = pen__cpu_ns();
	r->cpu_s = (double)(cpu - r->info.start_cpu_ns) / 1e9;
	e.cpu_s = (double)(cpu - cpu0) / 1e9;
	e.seconds = (double)(pen__now_ns() - t0) / 1e9;
	r->partial = interrupted() || rc < 0;
	if (add_epoch(r, &e))
		return pen__fail_nomem(err, "epochs", 0);
	return rc > 0 ? 0 : rc;
}

static void drop_cache(const struct pen_dataset *ds)
{
	char path[4096];

	for (uint64_t i = 0; i < pen_dataset_nobjects(ds) && !interrupted();
	     i++)
		if (!pen_dataset_object(ds, i, path, sizeof(path), NULL))
			pen__page_cache_drop(path);
}

/* Where the time of the workers went, in percent. */
struct shares {
	double plan, open, read, unpack, decode, emit, idle;
};

static struct shares shares_of(const struct pen_stats *s)
{
	double all =
		(double)(s->plan_ns + s->file_open_ns + s->read_ns +
			 s->unpack_ns + s->decode_ns + s->emit_ns + s->idle_ns);

	if (all <= 0)
		all = 1;
	return (struct shares){ 100 * (double)s->plan_ns / all,
				100 * (double)s->file_open_ns / all,
				100 * (double)s->read_ns / all,
				100 * (double)s->unpack_ns / all,
				100 * (double)s->decode_ns / all,
				100 * (double)s->emit_ns / all,
				100 * (double)s->idle_ns / all };
}

static void print_loader(const struct run *r, const struct pen_stats *s)
{
	const int ranks = r->comm ? r->comm->size : 1;
	char batch[128], each[64] = "";

	if (r->info.pack)
		snprintf(batch, sizeof(batch), "%s of %s",
			 counted(r->info.pack_rows, "row"),
			 grouped(r->info.pack));
	else if (r->info.batch_tokens)
		snprintf(batch, sizeof(batch), "up to %s",
			 counted(r->info.batch_tokens, "token"));
	else
		snprintf(batch, sizeof(batch), "%s",
			 grouped(r->info.batch_samples));
	if (ranks > 1)
		snprintf(each, sizeof(each), ", on each of %d ranks", ranks);
	print_line(14, "loader", "batches of %s, %s, %s, prefetch depth %s%s",
		   batch, r->info.sampler, counted(s->nthreads, "thread"),
		   counted(s->prefetch, "batch"), each);
	if (ranks > 1)
		print_line(14, "",
			   "waits, memory and thread time below are "
			   "those of rank 0");
	if (r->info.padding)
		print_line(14, "",
			   "%s per epoch are repeated to fill the last "
			   "batches (tail=pad)",
			   counted(r->info.padding, "sample"));
}

static void print_data(const struct run *r, const struct pen_stats *s)
{
	const struct pen_dataset *ds = pen_loader_dataset(r->l);
	const uint64_t nfiles = pen_dataset_nobjects(ds);

	print_line(2, NULL, "%s: %s in %s %s %s, %s",
		   pen_spec_path(pen_dataset_spec(ds), 0),
		   counted(pen_dataset_nsamples(ds), "sample"), grouped(nfiles),
		   pen_dataset_format(ds), nfiles == 1 ? "file" : "files",
		   human_bytes((double)pen_dataset_nbytes(ds)));
	for (uint32_t i = 0; i < pen_dataset_nfields(ds); i++) {
		const struct pen_field *f = pen_dataset_field(ds, i);

		print_line(14, shown(f->name), "%s %s",
			   pen_dtype_name(f->dtype),
			   shape_text(f->shape, f->ndim));
	}
	if (r->data.cached >= 0)
		print_line(14, "store",
			   "%s (%s), %.0f %% in the page cache at the start",
			   r->data.source, r->data.store_reason,
			   100 * r->data.cached);
	else
		print_line(14, "store", "%s (%s)", r->data.source,
			   r->data.store_reason);
	print_loader(r, s);
	puts("");
}

static void print_epochs(const struct run *r)
{
	size_t n = r->nepochs;
	char label[32];

	for (size_t i = 0; n > 1 && i < n; i++) {
		const struct epoch *e = &r->epoch[i];

		if (n > 12 && i >= 5 && i + 5 < n) {
			if (i == 5)
				printf("  ...\n");
			continue;
		}
		snprintf(label, sizeof(label), "epoch %zu", i + 1);
		print_line(14, label, "%s in %s, %s samples/s",
			   counted(e->samples, "sample"),
			   human_time(e->seconds),
			   human_count(
				   per_second((double)e->samples, e->seconds)));
	}
}

static void print_result(const struct run *r, const struct pen_stats *s)
{
	struct shares w = shares_of(s);
	struct pen_quality_result q;

	print_line(14, "samples", "%s/s (%s in %s)",
		   human_count(per_second((double)s->nsamples, r->seconds)),
		   grouped(s->nsamples), human_time(r->seconds));
	print_line(
		14, "payload", "%s/s",
		human_bytes(per_second((double)s->payload_bytes, r->seconds)));
	print_line(14, "read", "%s/s in %s",
		   human_bytes(per_second((double)s->read_bytes, r->seconds)),
		   counted(s->nreads, "read"));
	load_cache_print(r);
	print_line(
		14, "batch wait", "p50 %s, p90 %s, p99 %s, p99.9 %s, max %s",
		human_time((double)pen_loader_wait_percentile(r->l, 50) / 1e9),
		human_time((double)pen_loader_wait_percentile(r->l, 90) / 1e9),
		human_time((double)pen_loader_wait_percentile(r->l, 99) / 1e9),
		human_time((double)pen_loader_wait_percentile(r->l, 99.9) /
			   1e9),
		human_time((double)pen_loader_wait_percentile(r->l, 100) /
			   1e9));
	print_line(14, "",
		   "p99 is %s x p50; the slowest 10 %% take %s of the time",
		   pen__show_number(load_unevenness(r)).s,
		   pen__show_share(pen_loader_wait_slowest(r->l, 10)).s);
	print_line(14, "first batch",
		   "%s after the start (%s to open and index)",
		   human_time((double)s->first_batch_ns / 1e9),
		   human_time((double)s->open_ns / 1e9));
	if (s->payload_bytes >= LEAST_PAYLOAD)
		print_line(
			14, "CPU", "%s, %s per GB of payload",
			human_time(r->cpu_s),
			human_time(r->cpu_s * 1e9 / (double)s->payload_bytes));
	else
		print_line(14, "CPU", "%s", human_time(r->cpu_s));
	/* buffers count when reserved, but are resident once written */
	print_line(14, "memory",
		   "%s peak resident%s; %s reserved for buffers (budget %s)",
		   human_bytes((double)pen__memory_peak()),
		   r->comm && r->comm->size > 1 ? " in the first rank" : "",
		   human_bytes((double)s->memory_peak_bytes),
		   human_bytes((double)s->memory_budget_bytes));
	print_line(14, "thread time",
		   "plan %.0f %%, open %.0f %%, read %.0f %%, unpack %.0f %%, "
		   "decode %.0f %%, copy %.0f %%, idle %.0f %%",
		   w.plan, w.open, w.read, w.unpack, w.decode, w.emit, w.idle);
	if (r->q) {
		pen__quality_result(r->q, &q);
		print_quality(&q, r->info.batch_samples, r->label);
	}
	if (r->checksum)
		print_line(14, "checksum", "%016llx",
			   (unsigned long long)r->sum);
}

static void print_text(const struct run *r)
{
	const struct pen_stats s = r->stats;
	struct pen_err e;
	uint64_t id;

	print_data(r, &s);
	print_epochs(r);
	print_result(r, &s);
	load_words(r);
	if (s.nskipped || s.nsubstituted)
		print_line(14, "bad samples",
			   "%s skipped, %s substituted:", grouped(s.nskipped),
			   grouped(s.nsubstituted));
	for (uint64_t i = 0; i < 10 && !pen_loader_skipped(r->l, i, &id, &e);
	     i++)
		print_line(6, NULL, "    sample %llu: %s: %s",
			   (unsigned long long)id, e.where, e.msg);
	if (r->partial)
		puts("  (interrupted: these are the figures so far)");
}

static int open_quality(struct run *r, struct pen_err *err)
{
	struct pen_quality_setup set;
	int rc = pen__quality_setup(&set, r->l, r->label, err);

	return rc ? rc : pen__quality_new(&r->q, &set, err);
}

static int not_opened(const struct run *r, const struct pen_spec *spec,
		      uint64_t start, const struct pen_err *err)
{
	const double open_s = (double)(pen__now_ns() - start) / 1e9;
	int rc = complain(err);

	if (err->code != PEN_ECLOSED || !interrupted())
		return rc;
	if (r->comm && r->comm->rank)
		return 128 + interrupted();
	if (r->out && load_json_unopened(r->out, spec, open_s))
		return EXIT_FAILED;
	if (!r->json)
		printf("  (interrupted while indexing: nothing was loaded)\n");
	else if (load_json_unopened(NULL, spec, open_s))
		return EXIT_FAILED;
	return 128 + interrupted();
}

/* Opens all ranks of the job or none. */
static int open_all(struct run *r, const struct pen_spec *spec,
		    struct pen_err *err)
{
	struct pen_dataset *ds;
	int rc = 0;

	if (r->drop) {
		rc = pen_dataset_open(&ds, spec, err);
		if (!rc) {
			drop_cache(ds);
			pen_dataset_close(ds);
		}
	}
	if (!rc)
		rc = pen_loader_open(&r->l, spec, err);
	if (!rc && !(r->comm && r->comm->rank))
		warn_of(pen_loader_dataset(r->l));
	if (!rc)
		rc = pen__check_any(r->l, err);
	if (!rc) {
		pen_loader_get_info(r->l, &r->info, sizeof(r->info));
		pen_dataset_get_info(pen_loader_dataset(r->l), &r->data,
				     sizeof(r->data));
	}
	if (!rc && r->quality)
		rc = open_quality(r, err);
	return r->comm ? pen__comm_agree(r->comm, rc, err) : rc;
}

static int measure(struct run *r, const struct pen_spec *spec)
{
	const uint64_t start = pen__now_ns();
	struct pen_err err = { 0 };
	int rc, out_rc;

	if (open_all(r, spec, &err))
		return not_opened(r, spec, start, &err);
	rc = load_sum(r, iterate(r, &err), &err);
	if (rc < 0 && (!r->nepochs || (r->comm && r->comm->size > 1)))
		return complain(&err);
	if (r->comm && r->comm->rank)
		return interrupted() ? 128 + interrupted() : EXIT_OK;
	out_rc = r->out ? load_json(r->out, r) : 0;
	if (r->json)
		out_rc = load_json(NULL, r) ? EXIT_FAILED : out_rc;
	else
		print_text(r);
	if (rc < 0)
		return complain(&err);
	return out_rc ? out_rc : interrupted() ? 128 + interrupted() : EXIT_OK;
}

static int take_flag(struct run *r, const struct args *a)
{
	if (!strcmp(a->key, "--json"))
		r->json = true;
	else if (!strcmp(a->key, "-o"))
		r->out = a->value;
	else if (!strcmp(a->key, "--checksum"))
		r->checksum = true;
	else if (!strcmp(a->key, "--drop-cache"))
		r->drop = true;
	else if (!strcmp(a->key, "--quality")) {
		r->quality = true;
		r->label = a->value && *a->value ? a->value : NULL;
	} else if (!strcmp(a->key, "--quiet"))
		r->quiet = true;
	else if (!strcmp(a->key, "--seconds")) {
		char *end;

		r->max_seconds = strtod(a->value, &end);
		if (*end || !(r->max_seconds > 0))
			return complain_usage(
				P_BAD_VALUE, "load",
				"--seconds: '%s' is not a number of seconds",
				a->value);
	} else if (pen__parse_count(a->value, &r->max_batches) ||
		   !r->max_batches)
		return complain_usage(P_BAD_VALUE, "load",
				      "%s: '%s' is not a number of batches",
				      a->key, a->value);
	return -1;
}

/* A launcher ends all ranks when one fails, so wait until the rank that prints
 * the error has done so. */
static void let_speak(void)
{
	nanosleep(&(struct timespec){ .tv_sec = 5 }, NULL);
}

static int run_load(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_load, .argc = argc, .argv = argv };
	struct run r = { 0 };
	struct pen_err err = { 0 };
	struct pen_launch by;
	struct pen_spec *spec;
	char decode[8];
	int kind, rc = -1;
	bool silent;

	if (pen_spec_new(&spec, &err))
		return complain(&err);
	pen_spec_on_stop(spec, interrupt_asked, NULL);
	/* all ranks have the same arguments: one prints the error */
	silent = !pen__comm_launch(&by, NULL) && by.rank > 0;
	mute(silent);
	while (rc < 0 && (kind = args_next(&a)) != ARG_END) {
		if (kind == ARG_BAD)
			rc = EXIT_USAGE;
		else if (kind == ARG_FLAG)
			rc = take_flag(&r, &a);
		else
			rc = spec_arg(spec, &a, kind);
		if (kind == ARG_SETTING)
			r.ranked |= !strcmp(a.key, "rank") ||
				    !strcmp(a.key, "world");
	}
	if (rc < 0 && (r.checksum || r.label) &&
	    !pen_spec_get(spec, "decode", decode, sizeof(decode)) &&
	    !strcmp(decode, "false"))
		rc = complain_usage(
			P_CONFLICT, "load",
			"%s needs delivered samples, and decode=false delivers "
			"none; omit one of them",
			r.checksum ? "--checksum" : "--quality=");
	mute(false);
	if (rc >= 0 && silent)
		let_speak();
	if (rc < 0)
		rc = load_ranks(&r, spec);
	if (rc < 0)
		rc = measure(&r, spec);
	pen__quality_free(r.q);
	pen_loader_close(r.l);
	pen_ranks_close(r.ranks);
	pen_spec_free(spec);
	pen__free(r.epoch);
	return rc;
}

static const char *const examples[] = {
	"penstock load data/ batch_size=64 shuffle=true epochs=3",
	"a directory of files, with a global shuffle",
	"penstock load x.npy batch_size=256 sampler=block sampler.chunk=64",
	"rows of one array, shuffled in blocks of adjacent chunks",
	"penstock load data/ store=uring store.direct=true queue_depth=64",
	"bypass the page cache, with 64 reads in flight per thread",
	"penstock load cells.h5ad format.obs=plate sampler=census "
	"--quality=plate",
	"cells in the order of the Census loader, and how well it mixes plates",
	"penstock load reads/ sampler=bucket batch_tokens=16384 "
	"shapes=padded",
	"samples of different lengths: batches of equal size with little "
	"padding",
	"penstock load tokens/ shuffle=true pack=2048 batch_size=8 "
	"too_long=split",
	"rows of 2,048 tokens with several samples each; see docs/batches.md",
	"mpirun -n 4 penstock load data/ shuffle=true",
	"four ranks that share each global batch; rank 0 prints the sums",
	"mpirun -n 4 penstock load data/ cache=ddict epochs=3 shuffle=true",
	"read once, then from the memory of four ranks; see docs/ddict.md",
	"penstock load data/ --json -o result.json",
	"the result as JSON",
	NULL,
};

const struct command pen__cmd_load = {
	.name = "load",
	.ranks = true,
	.args = "PATH... [key=value ...] [flags]",
	.summary = "iterate over a data set and measure throughput",
	.about = "PATH is a file, a directory (including subdirectories), a "
		 "quoted glob, or @LIST, a file with one path per line; "
		 "samples follow the order of the paths. Loads the data into "
		 "batches as a training job would and prints samples/s, "
		 "bytes/s, how long the consumer waited for batches, CPU time "
		 "and memory. Under mpirun or srun each rank loads its slice "
		 "of every global batch, and rank 0 prints the sums. --quality "
		 "adds the measured and expected shuffle quality.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_load,
};
