/* Shared by the tests of checkpoints: a config, a directory, Python. */
#ifndef CKPT_H
#define CKPT_H

#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulate/ckpt_int.h"
#include "test.h"

static char ckpt_dir[64];

static inline int ckpt_unlink(const char *path, const struct stat *st, int kind,
			      struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static inline void ckpt_remove(void)
{
	nftw(ckpt_dir, ckpt_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* An empty directory of this process, removed at its end. */
static inline void ckpt_folder(const char *name)
{
	static bool again;

	snprintf(ckpt_dir, sizeof(ckpt_dir), "ckpt-%s-%d", name, (int)getpid());
	if (!again)
		atexit(ckpt_remove);
	again = true;
	ckpt_remove();
	CHECK(mkdir(ckpt_dir, 0777) == 0);
}

/* The defaults, with all paths below the directory. */
static inline struct pen_config ckpt_config(void)
{
	struct pen_config c = { 0 };

	c.model.size_bytes = 10240;
	c.model.num_layers = -1;
	c.model.model_datatype = PEN_SD_FP16;
	c.model.optimizer_datatype = PEN_SD_FP32;
	c.model.tensor = c.model.pipeline = 1;
	c.model.data = -1;
	c.model.vocab_size = 32000;
	c.model.hidden_size = 2048;
	c.model.ffn_hidden_size = 8192;
	c.model.num_attention_heads = c.model.num_kv_heads = 32;
	c.checkpoint.folder = ckpt_dir;
	c.checkpoint.randomize_tensor = c.checkpoint.verify = true;
	c.dataset.seed = 7;
	return c;
}

/* Runs check_checkpoint.py WHAT [A [B [C]]]; true if it exits with 0. */
static inline bool ckpt_python(const char *what, const char *a, const char *b,
			       const char *c)
{
	const char *source = getenv("SOURCE");
	char path[PATH_MAX] = __FILE__;
	char *slash = strrchr(path, '/');
	int status = -1;
	pid_t pid;

	snprintf(slash ? slash + 1 : path, 32, "data/check_checkpoint.py");
	if (source)
		snprintf(path, sizeof(path),
			 "%s/tests/data/check_checkpoint.py", source);
	pid = fork();
	if (pid == 0) {
		execl(PYTHON, PYTHON, path, what, a, b, c, (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static inline bool ckpt_have_torch(void)
{
	static int have = -1;

	if (have < 0) {
		have = test_python_has("torch");
		if (!have)
			printf("torch is not installed: not compared with "
			       "it\n");
	}
	return have;
}

/* A state on one line, as check_checkpoint.py reads and writes it. */
static inline void ckpt_describe(FILE *f, const struct pen_torch_state *s)
{
	static const char *const names[] = { "int8", "uint8", "fp16",
					     "bf16", "fp32",  "fp64" };

	for (size_t i = 0; i < s->nitems; i++) {
		const struct pen_torch_item *it = &s->item[i];

		fprintf(f, "%s", i ? "," : "");
		if (it->kind == PEN_TORCH_TENSOR)
			fprintf(f, "%s:%s:%" PRIu64, it->key, names[it->dtype],
				it->n);
		else if (it->kind == PEN_TORCH_OPEN)
			fprintf(f, "%s{", it->key);
		else if (it->kind == PEN_TORCH_SAME)
			fprintf(f, "%s=", it->key);
		else
			fprintf(f, "}");
	}
	fprintf(f, "\n");
}

#endif
