/*
 * The built-in workloads: all are valid and cause no notes; each has a comment;
 * their sizes; and random edits never crash the parser.
 */
#include "config.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"

static bool load(struct made *m, const char *name)
{
	memset(m, 0, sizeof(*m));
	pen__settings_init(&m->s);
	m->rc = pen__settings_load(&m->s, name, &m->e);
	if (!m->rc)
		m->rc = pen__config_settle(&m->c, &m->s, &m->e);
	return !m->rc;
}

static void all_settle(void)
{
	const struct pen_workload *w, *last = NULL;
	char about[400];
	struct made m;
	size_t n = 0;

	for (; (w = pen__workload_at(n)); n++, last = w) {
		CHECK(pen__workload_find(w->name) == w);
		CHECK(!last || strcmp(last->name, w->name) < 0);
		CHECK_EQ(strlen(w->text), w->n);
		pen__workload_about(w, about, sizeof(about));
		CHECK(strlen(about) > 20 && strlen(about) < 160);
		if (!CHECK(load(&m, w->name)))
			fprintf(stderr, "  %s: %s\n", m.e.where, m.e.msg);
		CHECK_STR(notes(&m), "");
		CHECK_STR(m.s.workload, w->name);
		unmake(&m);
	}
	CHECK(n >= 48);
	CHECK(!pen__workload_at(n) && !pen__workload_at(n + 5));
	CHECK(!pen__workload_find("nothing"));
}

/* The small workloads need seconds and at most 300 MB. */
static void small_ones(void)
{
	const struct pen_workload *w;
	struct made m;
	size_t n = 0;

	for (size_t i = 0; (w = pen__workload_at(i)); i++) {
		const size_t len = strlen(w->name);
		double bytes, steps;

		if (len < 6 || strcmp(w->name + len - 6, "_small"))
			continue;
		n++;
		if (!CHECK(load(&m, w->name)))
			continue;
		bytes = m.c.workflow.train ? pen__config_data_bytes(&m.c) : 0;
		steps = m.c.workflow.checkpoint ? 2 : 0; /* checkpoints */
		bytes += steps * pen__config_checkpoint_bytes(&m.c);
		CHECK(bytes > 1e5 && bytes < 300e6);
		CHECK(m.c.workflow.train == m.c.workflow.generate_data);
		steps = (double)m.c.dataset.num_files_train *
			(double)m.c.dataset.num_samples_per_file /
			(double)m.c.reader.batch_size;
		if (m.c.train.total_training_steps > 0)
			steps = (double)m.c.train.total_training_steps;
		CHECK(steps * (double)m.c.train.epochs *
			      m.c.train.computation_time.mean <
		      10);
		unmake(&m);
	}
	CHECK(n >= 10);
}

static void figures(void)
{
	struct made m;

	CHECK(load(&m, "unet3d_h100"));
	CHECK_EQ(m.c.framework, PEN_PYTORCH);
	CHECK_EQ(m.c.dataset.num_files_train, 168);
	CHECK_EQ(m.c.reader.batch_size, 7);
	CHECK_EQ(m.c.reader.file_shuffle, PEN_SHUFFLE_SEED);
	CHECK_EQ(m.c.model.size_bytes, 499153191);
	CHECK(m.c.workflow.checkpoint);
	CHECK(m.c.train.computation_time.mean > 0.3229 &&
	      m.c.train.computation_time.mean < 0.3231);
	CHECK_STR(m.c.dataset.data_folder, "data/unet3d");
	CHECK_EQ(pen__config_sample_bytes(&m.c), 12107 * 12107);
	unmake(&m);
	CHECK(load(&m, "llama3_8b"));
	CHECK(pen__config_parameters(&m.c) == 8030261248.0);
	/* MLPerf Storage: 105 GB, meaning GiB */
	CHECK_EQ(pen__config_checkpoint_bytes(&m.c) / 0x1p30 + 0.5, 105);
	CHECK(!m.c.workflow.train && m.c.workflow.checkpoint);
	CHECK(m.c.checkpoint.fsync);
	unmake(&m);
	CHECK(load(&m, "llama3_70b"));
	CHECK_EQ(pen__config_checkpoint_bytes(&m.c) / 0x1p30 + 0.5, 911);
	unmake(&m);
	CHECK(load(&m, "resnet50_a100"));
	CHECK_EQ(m.c.dataset.num_samples_per_file, 1251);
	CHECK(m.c.reader.dont_use_mmap);
	unmake(&m);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fputs(text, f) >= 0);
	if (f)
		fclose(f);
}

/* Names, files, --config-dir; arguments take precedence in any order. */
static void loading(void)
{
	struct made m;

	mkdir("workloads.d", 0777);
	mkdir("workloads.d/workload", 0777);
	put("workloads.d/workload/default.yaml", "train: {epochs: 77}\n");
	put("workloads.d/mine.yaml", "train: {epochs: 78}\n");
	put("workloads.d/empty.yaml", "");
	pen__settings_init(&m.s);
	CHECK_EQ(pen__settings_arg(&m.s, "train.epochs=5", &m.e), 0);
	m.s.config_dir = pen__strdup("workloads.d");
	CHECK_EQ(pen__settings_load(&m.s, NULL, &m.e), 0);
	CHECK_STR(m.s.workload, "default");
	CHECK_STR(m.s.source, "workloads.d/workload/default.yaml");
	CHECK_STR(m.s.v[0].value, "77");
	CHECK_EQ(pen__config_settle(&m.c, &m.s, &m.e), 0);
	CHECK_EQ(m.c.train.epochs, 5);
	m.rc = 0;
	unmake(&m);
	CHECK(load(&m, "workloads.d/mine.yaml"));
	CHECK_EQ(m.c.train.epochs, 78);
	unmake(&m);
	CHECK(!load(&m, "workloads.d/empty.yaml"));
	CHECK_STR(m.e.msg, "the file is empty");
	unmake(&m);
	CHECK(!load(&m, "workloads.d/"));
	CHECK(strstr(m.e.msg, "a directory, not a file"));
	unmake(&m);
	CHECK(!load(&m, "no/such.yaml"));
	CHECK(strstr(m.e.msg, "No such file"));
	unmake(&m);
	CHECK(!load(&m, "unet3d_h10"));
	CHECK(strstr(m.e.msg, "did you mean unet3d_h100?"));
	unmake(&m);
	pen__settings_init(&m.s);
	CHECK_EQ(pen__settings_arg(&m.s, "workload=default", &m.e), 0);
	CHECK_EQ(pen__settings_load(&m.s, "unet3d_h100", &m.e), PEN_EINVAL);
	CHECK(strstr(m.e.msg, "specified twice"));
	pen__settings_fini(&m.s);
	pen__settings_init(&m.s);
	m.s.config_dir = pen__strdup("no/such/dir");
	CHECK_EQ(pen__settings_load(&m.s, "default", &m.e), PEN_EINVAL);
	CHECK(strstr(m.e.msg, "no such directory"));
	pen__settings_fini(&m.s);
}

#define ROOM 8192

/* One random edit: a byte changed, a piece removed or doubled, or a line of
 * another workload. */
static size_t mutate(struct pen_rng *r, char *text, size_t n)
{
	static const char bytes[] = "\t\n :-[]{}'\"#&*<>|,0x\xff~$%\\";
	const size_t at = pen__rng_below(r, n), left = n - at;
	const size_t len = 1 + pen__rng_below(r, left < 40 ? left : 40);

	switch (pen__rng_below(r, 4)) {
	case 0:
		text[at] = bytes[pen__rng_below(r, sizeof(bytes) - 1)];
		return n;
	case 1:
		memmove(text + at, text + at + len, left - len);
		return n - len > 0 ? n - len : 1;
	case 2:
		memmove(text + at + len, text + at, left);
		return n + len;
	default:
		memmove(text + pen__rng_below(r, n - len + 1), text + at,
			len < 16 ? len : 16);
		return n;
	}
}

static void mutations(void)
{
	struct pen_rng r = pen__rng(7, 0);
	static char text[ROOM];
	size_t nworkloads = 0, taken = 0;
	struct made m;

	while (pen__workload_at(nworkloads))
		nworkloads++;
	for (unsigned round = 0; round < 1000; round++) {
		const struct pen_workload *w =
			pen__workload_at(pen__rng_below(&r, nworkloads));
		size_t n = w->n, slips = 1 + pen__rng_below(&r, 4);

		memcpy(text, w->text, n);
		while (slips--)
			n = mutate(&r, text, n);
		memset(&m, 0, sizeof(m));
		pen__settings_init(&m.s);
		m.s.lenient = round % 2;
		m.rc = pen__settings_yaml(&m.s, text, n, "f.yaml", &m.e);
		if (!m.rc)
			m.rc = pen__config_settle(&m.c, &m.s, &m.e);
		CHECK(m.rc == 0 || m.rc == PEN_EINVAL || m.rc == PEN_ENOTSUP);
		CHECK(!m.rc || (m.e.msg[0] && !strchr(m.e.msg, '\n')));
		taken += !m.rc;
		unmake(&m);
	}
	CHECK(taken > 100 && taken < 900);
}

int main(void)
{
	all_settle();
	small_ones();
	figures();
	loading();
	mutations();
	return test_end();
}
