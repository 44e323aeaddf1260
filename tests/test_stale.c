/* What killed processes left behind is removed, and nothing else. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/stale.h"
#include "test.h"

static char dir[64];

/* A name with @ for the process ID. */
static const char *path_of(const char *name, long pid)
{
	static char path[256];
	const int at = (int)strcspn(name, "@");

	snprintf(path, sizeof(path), "%s/%.*s%ld%s", dir, at, name, pid,
		 name + at + 1);
	return path;
}

static void put(const char *name, long pid)
{
	FILE *f = fopen(path_of(name, pid), "w");

	if (CHECK(f != NULL))
		fclose(f);
}

static bool there(const char *name, long pid)
{
	return access(path_of(name, pid), F_OK) == 0;
}

/* The ID of a process that no longer exists. */
static long gone(void)
{
	const pid_t pid = fork();

	if (!pid)
		_exit(0);
	CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
	return pid;
}

static const char *const ours[] = { "x.pen.@.tmp", "x.pen.@-1.tmp",
				    "x.pen.@-aBc.tmp" };
static const char *const others[] = {
	"y.pen.@.tmp", "xx.pen.@.tmp", "x.pen.more.@.tmp",
	"x.pen.@.old", "x.pen.0@.tmp", "x.pen.@x.tmp",
	"x.pen.@",     "x.pen.tmp@",   "x.pen@.tmp",
};
#define N(a) (sizeof(a) / sizeof((a)[0]))

static void remove_all(long pid)
{
	for (size_t i = 0; i < N(ours); i++)
		unlink(path_of(ours[i], pid));
	for (size_t i = 0; i < N(others); i++)
		unlink(path_of(others[i], pid));
}

static void count(const char *stale, void *arg)
{
	(void)stale;
	++*(int *)arg;
}

int main(void)
{
	const long dead = gone(), me = (long)getpid();
	char path[128];
	int n = 0;

	snprintf(dir, sizeof(dir), "stale-%d", (int)getpid());
	CHECK_EQ(mkdir(dir, 0777), 0);
	for (size_t i = 0; i < N(ours); i++) {
		put(ours[i], dead);
		put(ours[i], me);
	}
	for (size_t i = 0; i < N(others); i++)
		put(others[i], dead);
	snprintf(path, sizeof(path), "%s/x.pen", dir);
	pen__stale_each(path, "old", count, &n);
	CHECK_EQ(n, 1);
	pen__stale_remove(path);
	for (size_t i = 0; i < N(ours); i++) {
		CHECK(!there(ours[i], dead));
		CHECK(there(ours[i], me));
	}
	for (size_t i = 0; i < N(others); i++)
		CHECK(there(others[i], dead));
	/* any name */
	snprintf(path, sizeof(path), "%s/", dir);
	pen__stale_remove(path);
	CHECK(!there("y.pen.@.tmp", dead));
	CHECK(there("x.pen.@.old", dead) && there("x.pen.@x.tmp", dead));
	CHECK(there(ours[0], me));
	pen__stale_remove("nowhere/at/all");
	remove_all(dead);
	remove_all(me);
	CHECK_EQ(rmdir(dir), 0);
	return test_end();
}
