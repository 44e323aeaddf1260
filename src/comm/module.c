/*
 * Finding and loading a module. Relative places start from the executable, then
 * from the shared library this is in (Python's executable is elsewhere), and
 * not from where the build said, because an installation may be moved; the
 * first file that is there is the one: when it cannot be loaded, that is said,
 * and nothing else is tried that might be of another build.
 *
 * A module is never unloaded: MPI libraries leave handlers and threads behind.
 */
#include "comm/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const places[] = {
	"",
	"penstock/", /* beside the library */
	"src/comm/", /* the build tree */
	"../comm/",  /* the build tree */
	"../lib/penstock/",
	"../lib/" PEN_ARCH "/penstock/",
	PEN_LIBDIR "/penstock/", /* absolute: where it was to be installed */
};

static void cut_name(char *path, size_t n)
{
	while (n && path[n - 1] != '/')
		path[--n] = '\0';
}

/* The executable's directory with a slash at the end. */
static int own_dir(char *buf, size_t cap, struct pen_err *err)
{
	ssize_t n = readlink("/proc/self/exe", buf, cap - 1);

	if (n < 0)
		return pen__fail(err, PEN_ENOTFOUND, "/proc/self/exe",
				 "cannot be read, so modules are not found; "
				 "set PENSTOCK_MODULES to their directory");
	buf[n] = '\0';
	cut_name(buf, (size_t)n);
	return 0;
}

/* The directory of the object that this code is in; false: not known. */
static bool library_dir(char *buf, size_t cap)
{
	Dl_info info;
	int n;

	if (!dladdr(places, &info) || !info.dli_fname)
		return false;
	n = snprintf(buf, cap, "%s", info.dli_fname);
	if (n <= 0 || (size_t)n >= cap || buf[0] != '/')
		return false;
	cut_name(buf, (size_t)n);
	return true;
}

/* Whether dir + sub holds the module; path is then its name. */
static bool there(char *path, const char *dir, const char *sub,
		  const char *name)
{
	int n = snprintf(path, PATH_MAX, "%s%spenstock-%s.so", dir, sub, name);

	return n > 0 && n < PATH_MAX && !access(path, F_OK);
}

static bool in_places(char *path, const char *dir, const char *name)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (there(path, places[i][0] == '/' ? "" : dir, places[i],
			  name))
			return true;
	return false;
}

static int find(char *path, const char *name, struct pen_err *err)
{
	const char *only = getenv("PENSTOCK_MODULES");
	char dir[PATH_MAX], library[PATH_MAX];
	int rc;

	if (only && only[0]) {
		if (there(path, only, "/", name))
			return 0;
		return pen__fail(err, PEN_ENOTFOUND, only,
				 "PENSTOCK_MODULES has no penstock-%s.so",
				 name);
	}
	rc = own_dir(dir, sizeof(dir), err);
	if (rc)
		return rc;
	if (in_places(path, dir, name))
		return 0;
	if (library_dir(library, sizeof(library)) &&
	    in_places(path, library, name))
		return 0;
	return pen__fail(err, PEN_ENOTFOUND, dir,
			 "no penstock-%s.so here or in " PEN_LIBDIR "/penstock",
			 name);
}

int pen__comm_load(const char *name, const struct pen_comm_module **out,
		   struct pen_err *err)
{
	const struct pen_comm_module *m;
	char path[PATH_MAX];
	void *so;
	int rc;

	rc = find(path, name, err);
	if (rc)
		return rc;
	/* global: the parts an MPI library loads in turn look for its symbols
	 */
	so = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!so)
		return pen__fail(err, PEN_ENOTSUP, path,
				 "cannot be loaded: %.120s", dlerror());
	m = dlsym(so, PEN_COMM_SYMBOL);
	if (!m || m->version != PEN_COMM_VERSION)
		return pen__fail(err, PEN_ENOTSUP, path,
				 "is of another version of penstock; install "
				 "both anew, from one build");
	*out = m;
	return 0;
}
