/*
 * How much CPU time other processes used during a measurement: the total of
 * /proc/stat minus that of this process and its children. Load average and CPU
 * pressure are not sufficient, as they include the measured process.
 */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "emulate/system.h"

static double seconds_of(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* Includes children that were waited for. */
static double own_cpu(void)
{
	static const int targets[] = { RUSAGE_SELF, RUSAGE_CHILDREN };
	double sum = 0;

	for (int i = 0; i < 2; i++) {
		struct rusage u;

		if (getrusage(targets[i], &u))
			continue;
		sum += seconds_of(&u.ru_utime) + seconds_of(&u.ru_stime);
	}
	return sum;
}

void pen__others_start(struct pen_others *o)
{
	pen__cpu_time(&o->cpu);
	pen__pressure_read(&o->psi);
	o->own_s = own_cpu();
	o->ns = pen__now_ns();
}

/* Counters may decrease when a container is migrated. */
static double more(uint64_t to, uint64_t from)
{
	return to > from ? (double)(to - from) : 0;
}

static uint64_t busy(const struct pen_cpu_time *c)
{
	return c->user + c->nice + c->system;
}

void pen__others_json(struct pen_text *t, const char *key,
		      const struct pen_others *from)
{
	const double hz = (double)sysconf(_SC_CLK_TCK);
	char *load = pen__proc_read("/proc/loadavg");
	struct pen_others to;
	double s, all;

	pen__others_start(&to);
	s = (double)(to.ns - from->ns) / 1e9;
	all = more(busy(&to.cpu), busy(&from->cpu)) / hz;
	pen__json_open(t, key, '{');
	pen__json_num(t, "seconds", s);
	pen__json_int(t, "cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	pen__json_num(t, "cpu_s", fmax(0, all - (to.own_s - from->own_s)));
	pen__json_num(t, "stolen_s", more(to.cpu.steal, from->cpu.steal) / hz);
	if (to.psi.known && s > 0)
		pen__json_num(t, "cpu_pressure",
			      more(to.psi.cpu_some, from->psi.cpu_some) / 1e6 /
				      s);
	if (load)
		pen__json_num(t, "load_average", strtod(load, NULL));
	pen__json_close(t, '}');
	pen__free(load);
}
