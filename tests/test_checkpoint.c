/* Checkpoints on disk: saving, loading, damage, interruption, a full disk. */
#include "ckpt.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/mem.h"

static char transformer[] = "transformer";

/* Two layers and an optimizer, some 900 KB, in blocks of 16 KiB. */
static struct pen_config small(void)
{
	struct pen_config c = ckpt_config();

	c.model.type = transformer;
	c.model.num_layers = 2;
	c.model.hidden_size = 64;
	c.model.ffn_hidden_size = 130;
	c.model.num_attention_heads = 8;
	c.model.num_kv_heads = 4;
	c.model.vocab_size = 101;
	c.model.zero_stage = 1;
	c.checkpoint.block_size = 16384;
	return c;
}

static void say(const struct pen_err *err)
{
	fprintf(stderr, "%s: %s\n", err->where, err->msg);
}

static struct pen_ckpt *open_rank(const struct pen_config *c, unsigned rank,
				  unsigned world)
{
	struct pen_err err = { 0 };
	struct pen_ckpt *k;

	if (!CHECK(pen__ckpt_new(&k, c, rank, world, &err) == 0)) {
		say(&err);
		exit(1);
	}
	return k;
}

static void save_one(const struct pen_config *c, unsigned rank, unsigned world,
		     unsigned epoch)
{
	struct pen_ckpt *k = open_rank(c, rank, world);
	struct pen_err err = { 0 };

	if (!CHECK(pen__ckpt_save(k, epoch, 5, &err) == 0))
		say(&err);
	pen__ckpt_free(k);
}

static int load_one(const struct pen_config *c, unsigned epoch,
		    struct pen_err *err)
{
	struct pen_ckpt *k = open_rank(c, 0, 1);
	int rc;

	*err = (struct pen_err){ 0 };
	rc = pen__ckpt_load(k, epoch, 5, err);
	pen__ckpt_free(k);
	return rc;
}

static void path_of(const struct pen_config *c, unsigned epoch, unsigned file,
		    char path[256])
{
	struct pen_ckpt *k = open_rank(c, 0, 1);

	snprintf(path, 256, "%s/global_epoch%u_step5/%s", ckpt_dir, epoch,
		 pen__ckpt_file(k, file, NULL));
	pen__ckpt_free(k);
}

/* The number of files of the first checkpoint with a suffix. */
static int count_entries(const char *suffix)
{
	const struct pen_config c = small();
	char path[256], name[300];
	int n = 0;

	for (unsigned i = 0; i < 2; i++) {
		path_of(&c, 1, i, path);
		snprintf(name, sizeof(name), "%s%s", path, suffix);
		n += access(name, F_OK) == 0;
	}
	return n;
}

static void there_and_back(void)
{
	struct pen_err err = { 0 };

	for (unsigned i = 0; i < 16; i++) {
		struct pen_config c = small();

		ckpt_folder("io");
		c.checkpoint.fsync = i & 1;
		c.checkpoint.randomize_tensor = i & 2;
		c.checkpoint.verify = i & 4;
		c.checkpoint.block_size = i & 8 ? 0 : 4096;
		save_one(&c, 0, 1, 1);
		save_one(&c, 0, 1, 2);
		CHECK_EQ(pen__ckpt_count(&c), 2);
		CHECK_EQ(load_one(&c, 1, &err), 0);
		CHECK_EQ(load_one(&c, 2, &err), 0);
		CHECK_STR(err.msg, "");
		CHECK_EQ(load_one(&c, 3, &err), PEN_ENOTFOUND);
		CHECK(strstr(err.where, "global_epoch3_step5") != NULL);
		save_one(&c, 0, 1, 2); /* overwrites it */
		CHECK_EQ(count_entries(".tmp"), 0);
	}
}

/* Direct I/O works, or fails with a clear message. */
static void direct(void)
{
	struct pen_config c = small();
	struct pen_ckpt *k = open_rank(&c, 0, 1);
	struct pen_err err = { 0 };
	int rc;

	ckpt_folder("io");
	c.checkpoint.odirect = c.checkpoint.fsync = true;
	rc = pen__ckpt_save(k, 1, 5, &err);
	if (rc) {
		CHECK(strstr(err.msg, "checkpoint.odirect=false") != NULL);
		CHECK_EQ(count_entries(".tmp"), 0);
	} else {
		CHECK_EQ(pen__ckpt_load(k, 1, 5, &err), 0);
		c.checkpoint.odirect = false; /* the same file */
		CHECK_EQ(pen__ckpt_load(k, 1, 5, &err), 0);
	}
	pen__ckpt_free(k);
	/* odd lengths of the last block */
	for (uint64_t n = 1; !rc && n < 20000; n += 1365) {
		c = ckpt_config();
		c.model.size_bytes = n;
		c.checkpoint.odirect = true;
		c.checkpoint.block_size = 4096;
		save_one(&c, 0, 1, 1);
		CHECK_EQ(load_one(&c, 1, &err), 0);
	}
}

static void rename_in(const char *from, const char *to)
{
	CHECK(rename(from, to) == 0);
}

/* Content of another checkpoint or file is detected. */
static void content(void)
{
	struct pen_config c = small();
	struct pen_err err;
	char a[256], b[256];

	ckpt_folder("io");
	save_one(&c, 0, 1, 1);
	save_one(&c, 0, 1, 2);
	path_of(&c, 1, 0, a);
	path_of(&c, 2, 0, b);
	rename_in(a, b);
	CHECK_EQ(load_one(&c, 2, &err), PEN_EDATA);
	CHECK(strstr(err.msg, "is not what was saved") != NULL);
	CHECK(strstr(err.where, "model_0_model_states.pt") != NULL);
	c.checkpoint.verify = false;
	CHECK_EQ(load_one(&c, 2, &err), 0);
	c.checkpoint.verify = true;
	c.dataset.seed = 8;
	CHECK_EQ(load_one(&c, 2, &err), PEN_EDATA);
}

static void flip(const char *path, off_t at)
{
	const int fd = open(path, O_RDWR);
	uint8_t v = 0;

	CHECK(fd >= 0 && pread(fd, &v, 1, at) == 1);
	v ^= 0x10;
	CHECK(pwrite(fd, &v, 1, at) == 1);
	close(fd);
}

static void damage(void)
{
	struct pen_config c = small();
	struct pen_err err;
	char path[256], want[64];
	struct stat st = { 0 };
	off_t at;

	ckpt_folder("io");
	save_one(&c, 0, 1, 1);
	path_of(&c, 1, 1, path);
	CHECK(stat(path, &st) == 0);
	for (at = 4096; at < st.st_size - 4096; at += st.st_size / 7) {
		flip(path, at);
		CHECK_EQ(load_one(&c, 1, &err), PEN_EDATA);
		snprintf(want, sizeof(want), "byte %lld ", (long long)at);
		if (!CHECK(strstr(err.msg, want) != NULL))
			say(&err);
		c.checkpoint.verify = false; /* detected by the checksum */
		CHECK_EQ(load_one(&c, 1, &err), PEN_EDATA);
		CHECK(strstr(err.msg, "checksum of member") != NULL);
		c.checkpoint.verify = true;
		flip(path, at);
	}
	CHECK_EQ(load_one(&c, 1, &err), 0);
	for (at = st.st_size - 1; at > 0; at -= st.st_size / 9) {
		CHECK(truncate(path, at) == 0);
		CHECK_EQ(load_one(&c, 1, &err), PEN_EDATA);
	}
	CHECK(truncate(path, 0) == 0);
	CHECK_EQ(load_one(&c, 1, &err), PEN_EDATA);
	CHECK(unlink(path) == 0 && mkdir(path, 0777) == 0);
	CHECK_EQ(load_one(&c, 1, &err), PEN_EINVAL);
}

/* A rank reads the files of the same position on the next node. */
static void shift(void)
{
	struct pen_config c = small();
	struct pen_err err = { 0 };
	struct pen_ckpt *k, *two;
	char path[256];

	ckpt_folder("io");
	for (unsigned rank = 0; rank < 4; rank++)
		save_one(&c, rank, 4, 1);
	two = open_rank(&c, 2, 4);
	k = open_rank(&c, 0, 4);
	snprintf(path, sizeof(path), "%s/global_epoch1_step5/%s", ckpt_dir,
		 pen__ckpt_file(k, 0, NULL));
	CHECK(unlink(path) == 0);
	CHECK_EQ(pen__ckpt_load(k, 1, 5, &err), PEN_ENOTFOUND);
	pen__ckpt_set_node(k, 2);
	CHECK_EQ(pen__ckpt_load(k, 1, 5, &err), PEN_ENOTFOUND);
	c.checkpoint.recovery_rank_shift = true;
	CHECK_EQ(pen__ckpt_load(k, 1, 5, &err), 0);
	CHECK_EQ(pen__ckpt_load_bytes(k), pen__ckpt_bytes(two));
	CHECK(pen__ckpt_bytes(k) > pen__ckpt_bytes(two));
	pen__ckpt_set_node(k, 4); /* one node: no shift */
	CHECK_EQ(pen__ckpt_load(k, 1, 5, &err), PEN_ENOTFOUND);
	pen__ckpt_set_node(two, 2); /* wraps around to rank 0 */
	CHECK_EQ(pen__ckpt_load(two, 1, 5, &err), PEN_ENOTFOUND);
	pen__ckpt_free(k);
	pen__ckpt_free(two);
}

/* The result of the child is its exit code. */
static int in_child(int (*fn)(void))
{
	int status = -1;
	const pid_t pid = fork();

	if (pid == 0)
		_exit(fn());
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int save_in_little(void)
{
	const struct rlimit little = { 40000, 40000 };
	struct pen_config c = small();
	struct pen_err err = { 0 };
	struct pen_ckpt *k = open_rank(&c, 0, 1);
	int rc;

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &little);
	rc = pen__ckpt_save(k, 1, 5, &err);
	pen__ckpt_free(k);
	return rc == PEN_EIO && err.sys == EFBIG &&
			       strstr(err.where, "_model_states.pt") &&
			       strstr(err.msg, "cannot write the checkpoint")
		       ? 0
		       : 1;
}

static void no_room(void)
{
	struct pen_config c = small();
	struct pen_err err = { 0 };
	char path[256];
	struct pen_ckpt *k;

	ckpt_folder("io");
	CHECK_EQ(in_child(save_in_little), 0);
	CHECK_EQ(count_entries(".tmp"), 0);
	CHECK_EQ(count_entries(""), 0);
	/* a directory cannot be created below a file */
	snprintf(path, sizeof(path), "%s/file", ckpt_dir);
	close(open(path, O_CREAT | O_WRONLY, 0666));
	c.checkpoint.folder = path;
	k = open_rank(&c, 0, 1);
	CHECK(pen__ckpt_save(k, 1, 5, &err) < 0);
	CHECK(strstr(err.where, path) != NULL);
	CHECK(strstr(err.msg, "cannot create the directory") != NULL);
	CHECK_EQ(pen__ckpt_count(&c), 0);
	pen__ckpt_free(k);
	/* nor a file in place of a directory */
	c = small();
	path_of(&c, 1, 0, path);
	CHECK(mkdir(path, 0777) == 0);
	k = open_rank(&c, 0, 1);
	CHECK(pen__ckpt_save(k, 1, 5, &err) < 0);
	CHECK_EQ(count_entries(".tmp"), 0);
	pen__ckpt_free(k);
	CHECK(rmdir(path) == 0);
}

/* Killed during a write: only temporary files remain, and the next save removes
 * them. */
static void killed(void)
{
	struct pen_config c = ckpt_config();
	char path[256], tmp[300];
	struct pen_err err;
	struct stat st;
	int status;
	pid_t pid;

	ckpt_folder("io");
	c.model.size_bytes = 64 << 20;
	c.checkpoint.fsync = true;
	c.checkpoint.block_size = 65536;
	path_of(&c, 1, 0, path);
	snprintf(tmp, sizeof(tmp), "%s.tmp", path);
	pid = fork();
	if (pid == 0) {
		struct pen_ckpt *k = open_rank(&c, 0, 1);

		_exit(pen__ckpt_save(k, 1, 5, NULL) ? 1 : 0);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (stat(tmp, &st) == 0 && st.st_size > 0)
			kill(pid, SIGKILL);
		sched_yield();
	}
	/* on a busy machine it may finish before it is noticed */
	if (WIFSIGNALED(status) && access(tmp, F_OK) == 0)
		CHECK(access(path, F_OK) != 0);
	else
		CHECK_EQ(load_one(&c, 1, &err), 0);
	c.model.size_bytes = 1000;
	save_one(&c, 0, 1, 1);
	CHECK(access(tmp, F_OK) != 0);
	CHECK_EQ(load_one(&c, 1, &err), 0);
}

/* Interrupted: no incomplete files, and complete ones are removed on request.
 */
static void ended(void)
{
	struct pen_config c = small();
	struct pen_ckpt *k = open_rank(&c, 0, 1);
	struct pen_ckpt_watch w = { 0 };
	struct pen_err err = { 0 };
	uint64_t saved;

	ckpt_folder("io");
	pen__ckpt_set_watch(k, &w);
	CHECK_EQ(pen__ckpt_save(k, 1, 5, &err), 0);
	saved = atomic_load(&w.bytes);
	CHECK(saved >= pen__ckpt_bytes(k));
	CHECK_EQ(pen__ckpt_load(k, 1, 5, &err), 0);
	CHECK(atomic_load(&w.bytes) >= saved + pen__ckpt_bytes(k));
	atomic_store(&w.stop, true);
	CHECK_EQ(pen__ckpt_load(k, 1, 5, &err), PEN_ECLOSED);
	CHECK_EQ(err.code, PEN_ECLOSED);
	CHECK_EQ(pen__ckpt_save(k, 2, 5, &err), PEN_ECLOSED);
	CHECK_EQ(count_entries(".tmp"), 0);
	CHECK_EQ(pen__ckpt_count(&c), 2);
	pen__ckpt_drop(k, 2, 5);
	CHECK_EQ(pen__ckpt_count(&c), 1);
	CHECK_EQ(count_entries(""), 2);
	pen__ckpt_drop(k, 1, 5);
	CHECK_EQ(pen__ckpt_count(&c), 0);
	pen__ckpt_free(k);
}

static void no_memory(void)
{
	struct pen_config c = small();
	struct pen_ckpt *k = NULL;
	int rc = PEN_ENOMEM;

	ckpt_folder("io");
	for (uint64_t n = 1; n < 1000 && rc; n++) {
		pen__mem_fail_nth(n, true);
		rc = pen__ckpt_new(&k, &c, 0, 1, NULL);
	}
	CHECK_EQ(rc, 0);
	rc = PEN_ENOMEM;
	for (uint64_t n = 1; n < 1000 && rc; n++) {
		pen__mem_fail_nth(n, true);
		rc = pen__ckpt_save(k, 1, 5, NULL);
		pen__mem_fail_nth(0, false);
		CHECK_EQ(count_entries(".tmp"), 0);
	}
	CHECK_EQ(rc, 0);
	rc = PEN_ENOMEM;
	for (uint64_t n = 1; n < 1000 && rc; n++) {
		pen__mem_fail_nth(n, true);
		rc = pen__ckpt_load(k, 1, 5, NULL);
	}
	CHECK_EQ(rc, 0);
	pen__mem_fail_nth(0, false);
	pen__ckpt_free(k);
}

static void counting(void)
{
	static const char *const dirs[] = {
		"global_epoch1_step2",	 "global_epoch10_step0",
		"global_epoch_step2",	 "global_epoch1_step",
		"global_epoch1_step2.x", "epoch1_step2",
	};
	struct pen_config c = ckpt_config();
	char path[256];

	ckpt_folder("io");
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", ckpt_dir, dirs[i]);
		CHECK(mkdir(path, 0777) == 0);
	}
	snprintf(path, sizeof(path), "%s/global_epoch1_step3", ckpt_dir);
	close(open(path, O_CREAT | O_WRONLY, 0666));
	CHECK_EQ(pen__ckpt_count(&c), 2);
}

/* Copies all files of a rank to `want`, next to them. */
static void write_want(const struct pen_config *c, unsigned epoch)
{
	struct pen_ckpt_plan p;
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/global_epoch%u_step5/want", ckpt_dir,
		 epoch);
	f = fopen(path, "w");
	if (!CHECK(f != NULL))
		return;
	CHECK_EQ(pen__ckpt_plan(&p, c, 0, 2, NULL), 0);
	for (size_t i = 0; i < p.nfiles; i++) {
		fprintf(f, "%s %d ", p.file[i].name,
			!c->checkpoint.randomize_tensor);
		ckpt_describe(f, &p.file[i].state);
	}
	pen__ckpt_plan_fini(&p);
	fclose(f);
}

/* All types, with listed layers and groups. */
static struct pen_config of_type(int dtype)
{
	static int64_t layers[] = { 16, 3 }, groups[] = { 1024, 128 };
	struct pen_config c = small();

	c.model.tensor = 2;
	c.model.type = NULL;
	c.model.model_datatype = dtype % 6;
	c.model.optimizer_datatype = (dtype + 3) % 6;
	if (dtype > 5) {
		c.model.num_layers = dtype - 5;
		c.model.layer_parameters = (struct pen_opt_list){ layers, 2 };
		c.model.optimization_groups =
			(struct pen_opt_list){ groups, 2 };
	}
	return c;
}

/* torch reads our files, and we read those of torch, exactly. All in one
 * process, as loading torch takes longer than the test. */
static void with_torch(void)
{
	struct pen_config c;

	if (!ckpt_have_torch())
		return;
	ckpt_folder("io");
	for (int dtype = 0; dtype < 8; dtype++) {
		c = of_type(dtype);
		c.checkpoint.randomize_tensor = dtype == 1;
		save_one(&c, 0, 2, (unsigned)dtype);
		write_want(&c, (unsigned)dtype);
	}
	CHECK(ckpt_python("both", ckpt_dir, NULL, NULL));
	for (int dtype = 0; dtype < 8; dtype++) {
		struct pen_err err = { 0 };
		struct pen_ckpt *k;

		c = of_type(dtype);
		c.checkpoint.randomize_tensor = false;
		k = open_rank(&c, 0, 2);
		if (!CHECK(pen__ckpt_load(k, (unsigned)dtype, 5, &err) == 0))
			say(&err);
		pen__ckpt_free(k);
	}
}

int main(void)
{
	there_and_back();
	direct();
	content();
	damage();
	shift();
	no_room();
	killed();
	ended();
	no_memory();
	counting();
	with_torch();
	return test_end();
}
