/* doctor: features of this build, MPI, and peers to compare with. */
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

/* Searches PATH for a program. */
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
	doctor_because(d, "their libraries were missing at build time");
	doctor_advise(d, "scripts/setup build, then rebuild");
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
	if (pen__comm_load(by.mpi, &m, &err)) {
		doctor_say(d, "mpi", there ? DOCTOR_BETTER : DOCTOR_NOTE,
			   "%s; the MPI module of penstock does not load: %s",
			   there ? mpirun : "no mpirun in PATH", err.msg);
		doctor_because(d, "jobs across processes and hosts need both");
		doctor_advise(d, "apt-get install %s, then rebuild",
			      pen__mpi_to_build(by.mpi));
		return;
	}
	if (there) {
		doctor_say(d, "mpi", DOCTOR_FINE, "%s; the MPI module loads",
			   mpirun);
		return;
	}
	doctor_say(d, "mpi", DOCTOR_NOTE,
		   "the MPI module loads, but mpirun is not in PATH");
	doctor_because(d, "ranks can also be started by srun");
	doctor_advise(d, "apt-get install openmpi-bin");
}

/* Could this directory be created and written to? Creates nothing. */
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

/* The directory of cached indexes. */
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
	doctor_say(d, "kept indexes", DOCTOR_BETTER, "%s is not writable", dir);
	doctor_because(d, "every start lists and examines all files again");
	doctor_advise(d, "set XDG_CACHE_HOME to a writable directory");
}

static void check_python(struct doctor *d)
{
	static const char python[] = "/usr/bin/python3";

	if (access(python, X_OK)) {
		doctor_say(d, "python", DOCTOR_NOTE, "no %s", python);
		doctor_because(d, "it is needed only for `import penstock` and "
				  "the peers of `penstock bench`");
		return;
	}
	if (!access("/usr/lib/python3/dist-packages/torch", R_OK)) {
		doctor_say(d, "python", DOCTOR_FINE, "%s with PyTorch", python);
		return;
	}
	doctor_say(d, "python", DOCTOR_NOTE, "%s without Debian's PyTorch",
		   python);
	doctor_because(
		d, "`penstock bench` cannot compare with PyTorch's DataLoader");
	doctor_advise(d, "apt-get install python3-torch");
}

void doctor_software(struct doctor *d)
{
	check_build(d);
	check_cache(d);
	check_mpi(d);
	check_python(d);
}
