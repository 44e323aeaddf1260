/* A mapped file that shrinks is a return value, on any thread. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"

#define LEN ((size_t)64 * 4096)

struct map {
	volatile unsigned char *p;
	int fd;
};

static struct map map_open(void)
{
	struct map m;
	char name[] = "/tmp/penstock-guard-XXXXXX";
	void *p;

	m.fd = mkstemp(name);
	unlink(name);
	CHECK(m.fd >= 0 && ftruncate(m.fd, LEN) == 0);
	p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, m.fd, 0);
	CHECK(p != MAP_FAILED);
	m.p = p;
	return m;
}

static void map_shrink(struct map *m)
{
	CHECK(ftruncate(m->fd, 4096) == 0);
}

static void map_close(struct map *m)
{
	munmap((void *)(uintptr_t)m->p, LEN);
	close(m->fd);
}

static int touch(void *arg)
{
	struct map *m = arg;
	int sum = 5;

	for (size_t i = 0; i < LEN; i += 4096)
		sum += m->p[i];
	return sum;
}

static int touch_nested(void *arg)
{
	bool lost;

	pen__guard_run(touch, arg, &lost);
	CHECK(lost);
	/* the outer guard is armed again */
	return touch(arg);
}

static void *lose_often(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 50; i++) {
		struct map m = map_open();
		bool lost = true;

		CHECK_EQ(pen__guard_run(touch, &m, &lost), 5);
		CHECK(!lost);
		map_shrink(&m);
		pen__guard_run(touch, &m, &lost);
		CHECK(lost);
		pen__guard_run(touch_nested, &m, &lost);
		CHECK(lost);
		map_close(&m);
	}
	return NULL;
}

/* The effect of a SIGBUS outside any guard: in a child, as it may kill. */
static int outside(void (*before)(int))
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		struct map m = map_open();

		signal(SIGBUS, before);
		pen__guard_install();
		map_shrink(&m);
		touch(&m);
		_exit(3);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status;
}

static void on_bus(int sig)
{
	(void)sig;
	_exit(42);
}

int main(void)
{
	pthread_t t[4];
	int status;

	/* children first: the handler is installed once per process */
	status = outside(SIG_DFL);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	status = outside(on_bus);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);

	pen__guard_install();
	pen__guard_install();
	lose_often(NULL);
	for (unsigned i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, lose_often, NULL));
	for (unsigned i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return test_end();
}
