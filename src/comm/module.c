/*
 * Finding and loading a module: there is one for each MPI library. Relative
 * directories start at the executable, then at the shared library that contains
 * this code (Python's executable is elsewhere), not at the build's paths,
 * because an installation may be moved. The first file found is used: if it
 * cannot be loaded, that is an error, and no other is tried, since it might
 * belong to another build.
 *
 * A module is never unloaded: MPI libraries leave handlers and threads behind.
 */
#include "comm/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct library {
	const char *name;
	const char *file; /* as the loader knows it */
	const char *to_build, *to_run;
} libraries[] = {
	{ "openmpi", "libmpi.so.40", "libopenmpi-dev",
	  "libopenmpi3 and openmpi-bin" },
	{ "mpich", "libmpich.so.12", "libmpich-dev", "mpich" },
};
#define NLIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

static const char *const places[] = {
	"",
	"penstock/",	   /* next to the library */
	"src/comm/",	   /* in the build tree */
	"../comm/",	   /* in the build tree */
	"../../src/comm/", /* in the build tree, from the Python module */
	"../lib/penstock/",
	"../lib/" PEN_ARCH "/penstock/",
	PEN_LIBDIR "/penstock/", /* absolute: the configured directory */
};

static void cut_name(char *path, size_t n)
{
	while (n && path[n - 1] != '/')
		path[--n] = '\0';
}

/* Directory of the executable, with a trailing slash. */
static int own_dir(char *buf, size_t cap, struct pen_err *err)
{
	ssize_t n = readlink("/proc/self/exe", buf, cap - 1);

	if (n < 0)
		return pen__fail(
			err, P_NOT_FOUND, "/proc/self/exe",
			"cannot read the link, so modules cannot be found; set "
			"PENSTOCK_MODULES to their directory");
	buf[n] = '\0';
	cut_name(buf, (size_t)n);
	return 0;
}

/* Directory of the object that contains this code; false: unknown. */
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

/* Sets path to the module in dir + sub; true if it exists. */
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
		return pen__fail(err, P_NOT_FOUND, only,
				 "PENSTOCK_MODULES is set to this directory, "
				 "but it does not contain penstock-%s.so",
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
	return pen__fail(err, P_NOT_FOUND, dir,
			 "no penstock-%s.so here or in " PEN_LIBDIR "/penstock",
			 name);
}

static const struct library *library_of(const char *mpi)
{
	for (size_t i = 0; mpi && i < NLIBRARIES; i++)
		if (!strcmp(libraries[i].name, mpi))
			return &libraries[i];
	return NULL;
}

const char *pen__mpi_to_build(const char *mpi)
{
	const struct library *l = library_of(mpi);

	return l ? l->to_build : "libopenmpi-dev or libmpich-dev";
}

const char *pen__mpi_to_run(const char *mpi)
{
	const struct library *l = library_of(mpi);

	return l ? l->to_run : "openmpi-bin or mpich";
}

/* The library that this process has loaded, or NULL. */
static const char *loaded(void)
{
	for (size_t i = 0; i < NLIBRARIES; i++) {
		void *so = dlopen(libraries[i].file, RTLD_NOW | RTLD_NOLOAD);

		if (!so)
			continue;
		dlclose(so);
		return libraries[i].name;
	}
	return NULL;
}

/* The module to load; an error is that of the first library. */
static int choose(char *path, const char *mpi, struct pen_err *err)
{
	const char *const only = loaded();
	struct pen_err other;
	int rc;

	if (only || mpi)
		return find(path, only ? only : mpi, err);
	rc = find(path, libraries[0].name, err);
	for (size_t i = 1; i < NLIBRARIES && rc; i++)
		if (!find(path, libraries[i].name, &other))
			rc = 0;
	return rc;
}

/* A module starts with its version. */
static int load(const char *path, int flags, const char *symbol,
		unsigned version, const void **out, struct pen_err *err)
{
	const unsigned *m;
	void *so = dlopen(path, RTLD_NOW | flags);

	if (!so)
		return pen__fail(err, P_UNSUPPORTED_SYSTEM, path,
				 "cannot load the module: %.120s", dlerror());
	m = dlsym(so, symbol);
	if (!m || *m != version)
		return pen__fail(err, P_UNSUPPORTED_SYSTEM, path,
				 "the module belongs to another version of "
				 "penstock; reinstall both from one build");
	*out = m;
	return 0;
}

int pen__comm_load(const char *mpi, const struct pen_comm_module **out,
		   struct pen_err *err)
{
	char path[PATH_MAX];
	const void *m;
	int rc;

	rc = choose(path, mpi, err);
	/* global: components that an MPI library loads need its symbols */
	if (!rc)
		rc = load(path, RTLD_GLOBAL, PEN_COMM_SYMBOL, PEN_COMM_VERSION,
			  &m, err);
	if (!rc)
		*out = m;
	return rc;
}

/* UCX handles these signals from the moment it is loaded; this program, or the
 * one that uses the library, has its own handlers. */
static const int signals[] = { SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT };
#define NSIGNALS (sizeof(signals) / sizeof(signals[0]))

int pen__ucx_load(const struct pen_ucx_module **out, struct pen_err *err)
{
	struct sigaction before[NSIGNALS];
	char path[PATH_MAX];
	const void *m;
	int rc;

	rc = find(path, "ucx", err);
	if (rc)
		return rc;
	for (size_t i = 0; i < NSIGNALS; i++)
		(void)sigaction(signals[i], NULL, &before[i]);
	rc = load(path, 0, PEN_UCX_SYMBOL, PEN_UCX_VERSION, &m, err);
	for (size_t i = 0; i < NSIGNALS; i++)
		(void)sigaction(signals[i], &before[i], NULL);
	if (!rc)
		*out = m;
	return rc;
}
