/*
 * The output files of a run. Python reads them, see data/check_output.py; here
 * they are written, also with injected failures.
 */
#include "records.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emulate/output.h"

static struct pen_config config;
static struct pen_settings settings;
static struct pen_text watched;

/* Two epochs with two blocks and one block, an evaluation, a save, a load. */
static bool fill(struct pen_record *r)
{
	struct pen_phase *p;

	if (!record_block(r, 1, 1, 0.5, 0.4) ||
	    !record_block(r, 1, 2, 0.5, 0) ||
	    !record_ckpt(r, PEN_PHASE_SAVE, 1, 2))
		return false;
	p = pen__record_phase(r, PEN_PHASE_EVAL, 1, 1);
	for (unsigned a = 0; p && a < r->naccel; a++)
		for (int i = 0; i < 4; i++)
			if (pen__record_step(p, a, 0.5, 0.5))
				return false;
	if (!p)
		return false;
	p->start = r->start + 80;
	p->seconds = 5;
	p->end = p->start + 5;
	if (!record_block(r, 2, 1, 0.5, 0.4))
		return false;
	p = record_ckpt(r, PEN_PHASE_LOAD, 1, 1);
	if (!p)
		return false;
	p->seconds = r->comm->size;
	r->checkpoint_bytes = (uint64_t)r->comm->size << 30;
	r->dlio_checkpoint_bytes = 0x1p29;
	for (uint64_t i = 1; i <= 1000; i++)
		pen__hist_add(&r->wait, i * 1000);
	snprintf(r->store_reason, sizeof(r->store_reason),
		 "because \"of\" <this>");
	snprintf(r->device, sizeof(r->device), "vda");
	r->epoch = pen__calloc(2, sizeof(*r->epoch));
	if (!r->epoch)
		return false;
	for (unsigned e = 1; e <= 2; e++)
		r->epoch[r->nepochs++] = (struct pen_epoch_mark){
			.epoch = e,
			.start = r->start + 100 * (e - 1),
			.end = r->start + 100 * e - 10
		};
	r->epoch[0].meminfo =
		pen__strdup("MemTotal:  1 kB\n"
			    "no colon\n: no key\na:b:c\nprocessor: 7\n"
			    "a \"quoted\" key :\t\"<b>\\  ");
	return r->epoch[0].meminfo != NULL;
}

static int write_all(const struct pen_record *r, const struct pen_figures *f,
		     const char *dir, struct pen_err *err)
{
	char path[256];
	int rc = pen__output_dlio(r, f, dir, err);

	snprintf(path, sizeof(path), "%s/result.json", dir);
	if (!rc)
		rc = pen__output_result(r, f, &settings,
					r->comm->size == 1 ? &watched : NULL,
					path, err);
	snprintf(path, sizeof(path), "%s/trace-%d.json", dir, r->comm->rank);
	return rc ? rc : pen__output_trace(r, path, err);
}

static void one_rank(struct pen_comm *comm)
{
	struct pen_figures f;
	struct pen_record r;
	struct pen_err err = { 0 };
	struct pen_log log = { .fd = -1 };

	record_make(&r, &config, comm);
	r.naccel = r.world = 2;
	CHECK(fill(&r));
	CHECK_EQ(pen__figures(&f, &r, &err), 0);
	CHECK_EQ(mkdir("one", 0777), 0);
	CHECK_EQ(write_all(&r, &f, "one", &err), 0);
	CHECK_EQ(pen__log_open(&log, "dlio.log", &err), 0);
	pen__log(&log, "Starting epoch %d: %d steps expected", 1, 16);
	pen__log_warn(&log, "%s", "one line\r\nonly");
	pen__log_metrics(&log, &r, &f);
	pen__log_close(&log);
	CHECK_EQ(log.fd, -1);
	pen__log(&log, "to nobody");
	CHECK(pen__output_dlio(&r, &f, "missing", &err) == PEN_EIO ||
	      err.code == PEN_ENOTFOUND);
	CHECK(strstr(err.where, "missing/0_output.json") != NULL);
	CHECK(pen__output_trace(&r, "missing/x", &err) != 0);
	CHECK(pen__output_result(&r, &f, NULL, NULL, "missing/x", &err) != 0);
	pen__figures_fini(&f);
	pen__record_fini(&r);
}

/* Rank r has r + 1 accelerators; two ranks on the first host. */
static void rank_main(void *arg, unsigned i)
{
	struct ranks *all = arg;
	struct pen_figures f;
	struct pen_record r;
	struct pen_err err = { 0 };

	record_make(&r, &config, &all->comm[i]);
	r.naccel = i + 1;
	r.first = i * (i + 1) / 2;
	r.world = 6;
	CHECK(fill(&r));
	CHECK_EQ(pen__figures(&f, &r, &err), 0);
	if (!CHECK_EQ(write_all(&r, &f, "three", &err), 0))
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
	pen__figures_fini(&f);
	pen__record_fini(&r);
}

/* 600,000 steps on one track */
static void big_trace(struct pen_comm *comm)
{
	struct pen_record r;
	struct pen_phase *p;
	struct pen_err err = { 0 };

	record_make(&r, &config, comm);
	p = pen__record_phase(&r, PEN_PHASE_TRAIN, 1, 1);
	for (int i = 0; i < 600000; i++)
		if (pen__record_step(p, 0, 0.001, 0.002))
			break;
	CHECK_EQ(p->of[0].n, 600000);
	p->start = r.start;
	p->seconds = 1000; /* shorter than its steps, which are scaled */
	CHECK_EQ(pen__output_trace(&r, "big.json", &err), 0);
	pen__record_fini(&r);
}

static void without_steps(struct pen_comm *comm)
{
	struct pen_config c = config;
	struct pen_figures f;
	struct pen_record r;
	struct pen_err err = { 0 };

	c.workflow.train = c.workflow.evaluation = false;
	record_make(&r, &c, comm);
	CHECK_EQ(pen__figures(&f, &r, &err), 0);
	CHECK_EQ(mkdir("nothing", 0777), 0);
	CHECK_EQ(write_all(&r, &f, "nothing", &err), 0);
	pen__figures_fini(&f);
	CHECK(record_ckpt(&r, PEN_PHASE_SAVE, 1, 2) &&
	      record_ckpt(&r, PEN_PHASE_SAVE, 2, 2) &&
	      record_ckpt(&r, PEN_PHASE_LOAD, 1, 2));
	CHECK_EQ(pen__figures(&f, &r, &err), 0);
	CHECK_EQ(mkdir("checkpoints", 0777), 0);
	CHECK_EQ(write_all(&r, &f, "checkpoints", &err), 0);
	pen__figures_fini(&f);
	pen__record_fini(&r);
}

/* No file is incomplete, whichever allocation fails. If /proc cannot be read, a
 * file is complete without it. */
static void no_memory(struct pen_comm *comm)
{
	struct pen_figures f;
	struct pen_record r;
	struct pen_err err;
	uint64_t nth = 0, calls = 0;
	int rc, failed = 0;

	record_make(&r, &config, comm);
	CHECK(fill(&r));
	CHECK_EQ(pen__figures(&f, &r, NULL), 0);
	CHECK_EQ(mkdir("nomem", 0777), 0);
	do {
		pen__mem_fail_nth(++nth, false);
		rc = write_all(&r, &f, "nomem", &err);
		calls = pen__mem_count();
		pen__mem_fail_nth(0, false);
		CHECK(!rc || (rc == PEN_ENOMEM && err.code == rc));
		failed += rc != 0;
	} while (calls >= nth && nth < 1000);
	CHECK_EQ(rc, 0);
	CHECK(failed > 20);
	pen__figures_fini(&f);
	pen__record_fini(&r);
}

struct said {
	int n;
	char last[128];
};

static void say(void *arg, enum pen_log_level level, const char *line)
{
	struct said *s = arg;

	CHECK(level == PEN_LOG_OUTPUT || level == PEN_LOG_WARNING);
	CHECK(!strchr(line, '\n'));
	snprintf(s->last, sizeof(s->last), "%s", line);
	s->n++;
}

static void logging(void)
{
	struct said s = { 0 };
	struct pen_log log = { .say = say, .arg = &s, .fd = -1 };
	struct pen_err err = { 0 };
	char buf[32], line[5000];

	CHECK_STR(pen__iso_time(1763239746.949188, buf),
		  "2025-11-15T20:49:06.949188");
	CHECK_STR(pen__iso_time(-1, buf), "");
	CHECK_STR(pen__iso_time(1e300, buf), "");
	CHECK_STR(pen__iso_time(0.0 / 0.0, buf), "");
	pen__log_warn(&log, "careful");
	CHECK_EQ(s.n, 1);
	CHECK(!strncmp(s.last, "[WARNING] 20", 12));
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	pen__log(&log, "%s", line); /* only truncated */
	CHECK_EQ(s.n, 2);
	log.quiet = true;
	pen__log(&log, "nothing");
	pen__log_metrics(&log, NULL, NULL);
	CHECK_EQ(pen__log_open(&log, "no/such/dir/x", &err), 0);
	CHECK_EQ(s.n, 2);
	log.quiet = false;
	CHECK(pen__log_open(&log, "no/such/dir/x", &err) != 0);
	CHECK_EQ(pen__log_open(&log, NULL, &err), 0);
}

static void make_settings(void)
{
	static char key[] = "model.name",
		    value[] = "a \"b\" <script>\\ \n\001 \xc3\xa9",
		    origin[] = "argument";
	static struct pen_setting one = { .key = key,
					  .value = value,
					  .origin = origin };

	settings.v = &one;
	settings.n = 1;
	pen__text_add(&settings.overrides, "++workload.x=\"1\"\nworkload=y\n");
}

static int remove_one(const char *path, const struct stat *st, int kind,
		      struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static void check_files(const char *script)
{
	char cmd[8300];

	snprintf(cmd, sizeof(cmd), PYTHON " '%s' .", script);
	CHECK_EQ(system(cmd), 0);
}

int main(void)
{
	char root[] = "/tmp/penstock-output-XXXXXX", script[4096] = __FILE__,
	     *slash = strrchr(script, '/');
	const char *source = getenv("SOURCE");
	struct pen_watch *watch;
	struct ranks one, three;

	if (!test_python_has("numpy"))
		TEST_SKIP("no NumPy");
	setenv("TZ", "UTC", 1);
	snprintf(slash ? slash + 1 : script, 32, "data/check_output.py");
	if (source)
		snprintf(script, sizeof(script),
			 "%s/tests/data/check_output.py", source);
	if (!mkdtemp(root) || chdir(root))
		return 1;
	config_make(&config);
	config.workflow.evaluation = true;
	make_settings();
	ranks_init(&one, 1, 1);
	ranks_init(&three, 3, 2);
	CHECK_EQ(pen__watch_start(&watch, NULL, NULL), 0);
	pen__watch_stop(watch, &watched);
	one_rank(&one.comm[0]);
	CHECK_EQ(mkdir("three", 0777), 0);
	ranks_run(&three, rank_main, &three);
	big_trace(&one.comm[0]);
	without_steps(&one.comm[0]);
	logging();
	check_files(script);
	no_memory(&one.comm[0]);
	ranks_fini(&three);
	ranks_fini(&one);
	pen__text_fini(&watched);
	pen__text_fini(&settings.overrides);
	if (chdir("/") || nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS))
		return 1;
	return test_end();
}
