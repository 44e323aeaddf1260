/* Complete runs in this process, on tiny data in a directory of the test. */
#ifndef RUNS_H
#define RUNS_H

#include "test.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "comm/module.h"
#include "emulate/run.h"

static char runs_dir[64];

static inline int runs_unlink(const char *path, const struct stat *sb, int kind,
			      struct FTW *at)
{
	(void)sb;
	(void)kind;
	(void)at;
	return remove(path);
}

static inline void runs_remove(const char *below)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s%s", runs_dir, *below ? "/" : "",
		 below);
	nftw(path, runs_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void runs_begin(void)
{
	snprintf(runs_dir, sizeof(runs_dir), "run-%d", (int)getpid());
	CHECK(mkdir(runs_dir, 0777) == 0);
	/* the next test process must not use this index */
	setenv("XDG_CACHE_HOME", runs_dir, 1);
}

/* A run and its environment. */
struct done {
	struct pen_settings s;
	struct pen_config c;
	struct pen_comm self;
	struct pen_run r;
	struct pen_err err;
	int rc;
	bool settled;
};

/* Small files of one kind, little compute; args take precedence. */
static const char runs_base[] = "dataset.num_files_train=8\n"
				"dataset.num_files_eval=4\n"
				"dataset.num_subfolders_train=0\n"
				"dataset.num_subfolders_eval=0\n"
				"dataset.record_length_bytes=1024\n"
				"reader.batch_size=2\n"
				"reader.batch_size_eval=1\n"
				"train.computation_time=0.0005\n"
				"evaluation.eval_time=0.0003\n"
				"workflow.evaluation=false\n"
				"model.model_size_bytes=20000\n";

static inline int runs_args(struct done *d, const char *args)
{
	char arg[512];
	int rc = 0;

	while (!rc && *args) {
		const size_t n = strcspn(args, "\n");

		snprintf(arg, sizeof(arg), "%.*s", (int)n, args);
		rc = pen__settings_arg(&d->s, arg, &d->err);
		args += n + (args[n] == '\n');
	}
	return rc;
}

/* Settings only; `data` is the data directory. */
static inline int runs_settle(struct done *d, const char *workload,
			      const char *data, const char *args)
{
	char own[512];
	int rc;

	memset(d, 0, sizeof(*d));
	pen__settings_init(&d->s);
	snprintf(own, sizeof(own),
		 "dataset.data_folder=%s/%s\noutput.folder=%s/out\n"
		 "checkpoint.checkpoint_folder=%s/ckpt\n",
		 runs_dir, data, runs_dir, runs_dir);
	rc = runs_args(d, own);
	if (!rc && !strcmp(workload, "default_small"))
		rc = runs_args(d, runs_base);
	if (!rc)
		rc = runs_args(d, args);
	if (!rc)
		rc = pen__settings_load(&d->s, workload, &d->err);
	if (!rc)
		rc = pen__config_settle(&d->c, &d->s, &d->err);
	d->settled = !rc;
	d->self = (struct pen_comm){
		.ops = &pen__comm_self, .size = 1, .nnodes = 1, .local_size = 1
	};
	d->r = (struct pen_run){ .set = &d->s,
				 .c = &d->c,
				 .comm = &d->self,
				 .base_dir = runs_dir,
				 .log = { .fd = -1 } };
	return d->rc = rc;
}

/* Settles and runs. */
static inline int runs_do(struct done *d, const char *workload,
			  const char *data, const char *args)
{
	if (!runs_settle(d, workload, data, args))
		d->rc = pen__run(&d->r, &d->err);
	return d->rc;
}

static inline void runs_end(struct done *d)
{
	pen__run_fini(&d->r);
	if (d->settled)
		pen__config_fini(&d->c);
	pen__settings_fini(&d->s);
}

static inline bool runs_there(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", runs_dir, name);
	return access(path, F_OK) == 0;
}

static inline bool runs_fine(const struct done *d, const char *name)
{
	if (CHECK_EQ(d->rc, 0))
		return true;
	fprintf(stderr, "  %s: %s: %s\n", name, d->err.where, d->err.msg);
	return false;
}

#endif
