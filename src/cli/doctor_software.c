/* doctor: what this build has, MPI, and the programs one compares with. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "comm/launch.h"
#include "comm/module.h"
#include "penstock.h"

/* Is there such a program in PATH? */
static bool in_path(const char *name, char *out, size_t cap)
{
	const char *p = getenv("PATH");

	while (p && *p) {
		size_t n = strcspn(p, ":");
		int len = snprintf(out, cap, "%.*s/%s", (int)n, p, name);

		if (n && len > 0 && (size_t)len < cap && !access(out, X_OK))
			return true;
		p += n + (p[n] == ':');
	}
	return false;
}

static void check_build(struct doctor *d)
{
	static const char *const wanted[] = { "hdf5", "jpeg", "png", "zarr",
					      "tfrecord" };
	char missing[128] = "";
	size_t at = 0;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		bool there = false;
		const char *name;

		for (uint32_t k = 0; (name = pen_name_at("format", k)); k++)
			there |= !strcmp(name, wanted[i]);
		if (!there)
			at += (size_t)snprintf(missing + at,
					       sizeof(missing) - at, " %s",
					       wanted[i]);
	}
	if (!at) {
		doctor_say(d, "penstock", DOCTOR_FINE,
			   "%s, with all its formats", pen_version());
		return;
	}
	doctor_say(d, "penstock", DOCTOR_BETTER, "%s, without:%s",
		   pen_version(), missing);
	doctor_because(d, "their libraries were not there when it was built");
	doctor_advise(d, "scripts/setup build, then build anew");
}

static void check_mpi(struct doctor *d)
{
	const struct pen_comm_module *m;
	struct pen_launch by = { 0 };
	struct pen_err err = { 0 };
	char mpirun[512];
	bool there = in_path("mpirun", mpirun, sizeof(mpirun));

	if (!pen__comm_launch(&by, NULL) && by.by)
		doctor_say(d, "launched by", DOCTOR_NOTE, "%s, %d ranks", by.by,
			   by.size);
	if (pen__comm_load("mpi", &m, &err)) {
		doctor_say(d, "mpi", there ? DOCTOR_BETTER : DOCTOR_NOTE,
			   "%s; no module of ours: %s",
			   there ? mpirun : "no mpirun", err.msg);
		doctor_because(d, "runs over several processes and hosts need "
				  "both");
		doctor_advise(d, "apt-get install openmpi-bin libopenmpi-dev, "
				 "and build anew");
		return;
	}
	if (there) {
		doctor_say(d, "mpi", DOCTOR_FINE, "%s, and our module loads",
			   mpirun);
		return;
	}
	doctor_say(d, "mpi", DOCTOR_NOTE,
		   "our module loads, but there is no "
		   "mpirun in PATH");
	doctor_because(d, "srun starts ranks, too");
	doctor_advise(d, "apt-get install openmpi-bin");
}

/* Could this directory be made and written to? Nothing is made. */
static bool could_write(const char *dir)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s", dir);
	while (path[0] && access(path, F_OK)) {
		char *slash = strrchr(path, '/');

		if (!slash)
			return false;
		*slash = '\0';
	}
	return !access(path[0] ? path : "/", W_OK | X_OK);
}

/* The index of a data set is kept there. */
static void check_cache(struct doctor *d)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char dir[4096];

	if (base && base[0])
		snprintf(dir, sizeof(dir), "%s/penstock", base);
	else
		snprintf(dir, sizeof(dir), "%s/.cache/penstock",
			 home ? home : "");
	if (could_write(dir)) {
		doctor_say(d, "kept indexes", DOCTOR_FINE, "%s", dir);
		return;
	}
	doctor_say(d, "kept indexes", DOCTOR_BETTER, "%s cannot be written",
		   dir);
	doctor_because(d, "every start lists and looks at all files again");
	doctor_advise(d, "XDG_CACHE_HOME=/somewhere/writable");
}

static void check_python(struct doctor *d)
{
	static const char python[] = "/usr/bin/python3";

	if (access(python, X_OK)) {
		doctor_say(d, "python", DOCTOR_NOTE, "no %s", python);
		doctor_because(d, "only `import penstock` and the peers of "
				  "`penstock bench` need it");
		return;
	}
	if (!access("/usr/lib/python3/dist-packages/torch", R_OK)) {
		doctor_say(d, "python", DOCTOR_FINE, "%s with PyTorch", python);
		return;
	}
	doctor_say(d, "python", DOCTOR_NOTE, "%s without Debian's PyTorch",
		   python);
	doctor_because(d, "`penstock bench` then measures no DataLoader "
			  "beside ours");
	doctor_advise(d, "apt-get install python3-torch");
}

void doctor_software(struct doctor *d)
{
	check_build(d);
	check_cache(d);
	check_mpi(d);
	check_python(d);
}
