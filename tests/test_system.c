/*
 * Parsing of /proc: arbitrary text is harmless, and the values agree with those
 * of Python.
 */
#include "test.h"

#include <math.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/team.h"
#include "emulate/system.h"
#include "verdict/facts.h"

static void disk_lines(void)
{
	static const char *const bad[] = {
		"",
		"\n",
		"   7       0",
		" 254 0 vda",
		" 254 0 vda 1 2 3 4 5 6 7 8 9 10",
		" x 0 vda 1 2 3 4 5 6 7 8 9 10 11",
		" 254 0 a-name-that-is-longer-than-any-device-may-have 1 2 3 4 "
		"5 6 7 8 9 10 11",
		" 254 0 vda 1 2 3 -4 5 6 7 8 9 10 11",
		" 254 0 vda 1 2 99999999999999999999999 4 5 6 7 8 9 10 11",
	};
	struct pen_disk d;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!CHECK(!pen__disk_parse(bad[i], &d)))
			fprintf(stderr, "'%s'\n", bad[i]);
	CHECK(pen__disk_parse(" 8 1 sda1 1 2 3 4 5 6 7 8 9 10 11\n 8 2 x", &d));
	CHECK_STR(d.name, "sda1");
	CHECK(d.reads == 1 && d.reads_merged == 2 && d.read_bytes == 1536);
	CHECK(d.read_ms == 4 && d.writes == 5 && d.writes_merged == 6);
	CHECK(d.write_bytes == 3584 && d.write_ms == 8 && d.io_ms == 10);
	CHECK(d.weighted_ms == 11 && d.discards == 0 && d.flush_ms == 0);
	CHECK(pen__disk_parse("8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 "
			      "17 18 19",
			      &d));
	CHECK(d.discards == 12 && d.discard_bytes == 14 * 512);
	CHECK(d.flushes == 16 && d.flush_ms == 17);
	CHECK(!pen__disk_read("no such disk", &d));
	CHECK(!d.name[0]);
}

static void pairs(void)
{
	struct pen_text t = { 0 };
	char *many = pen__alloc(300, 40);
	size_t n = 0;
	uint64_t v = 7;

	pen__json_open(&t, NULL, '{');
	t.compact = true;
	pen__proc_json(&t, "processor\t: 0\nmodel : old\nflags : a b\n\n"
			   "processor\t: 1\nmodel : new <x>\n"
			   "a:b:c\n:\nnothing\nend:");
	pen__json_close(&t, '}');
	CHECK_STR(t.p, "{\"model\": \"new \\u003cx>\", \"flags\": \"a b\", "
		       "\"end\": \"\"}\n");
	pen__text_fini(&t);
	/* too many keys: the first ones are kept */
	for (int i = 0; many && i < 300; i++)
		n += (size_t)snprintf(many + n, 40, "key %d: %d\n", i, i);
	pen__json_open(&t, NULL, '{');
	pen__proc_json(&t, many);
	pen__json_close(&t, '}');
	CHECK(strstr(t.p, "\"key 255\"") && !strstr(t.p, "\"key 256\""));
	pen__free(many);
	pen__text_fini(&t);
	CHECK(pen__proc_number("a: 1\nb: 22 kB\n", "b:", &v) && v == 22);
	CHECK(!pen__proc_number("a: 1\nb: x\n", "b:", &v));
	CHECK(!pen__proc_number("a: 1\n", "c:", &v));
	CHECK(!pen__proc_number(NULL, "c:", &v));
	CHECK(!pen__proc_read("/proc/no such file"));
	CHECK(!pen__proc_read("/proc"));
}

static void this_machine(void)
{
	struct pen_host h;
	struct utsname u;
	struct pen_self_io io;
	struct pen_cpu_time cpu;
	struct pen_pressure psi;
	struct pen_disk_about about;
	struct pen_disk d;
	char name[32] = "", cmd[512];

	pen__host(&h);
	CHECK(!uname(&u));
	CHECK_STR(h.name, u.nodename);
	CHECK(strstr(h.kernel, u.release) && h.cpu[0]);
	snprintf(cmd, sizeof(cmd),
		 PYTHON " -c 'import os; total = os.sysconf(\"SC_PHYS_PAGES\") "
			"* 4096\n"
			"assert os.cpu_count() == %u\n"
			"assert 0 < %llu <= total * 1.01'",
		 h.cpus, (unsigned long long)h.memory_bytes);
	if (sysconf(_SC_PAGESIZE) == 4096)
		CHECK_EQ(system(cmd), 0);
	pen__self_io(&io);
	CHECK(io.rchar > 0 || access("/proc/self/io", R_OK));
	pen__cpu_time(&cpu);
	CHECK(cpu.user + cpu.system > 0);
	pen__pressure_read(&psi);
	CHECK(psi.known == !access("/proc/pressure/cpu", R_OK));
	if (pen__disk_of("/etc", name, sizeof(name))) {
		CHECK(pen__disk_read(name, &d));
		pen__disk_about(name, &about);
		CHECK(about.known && about.size_bytes > 0);
		CHECK(about.scheduler[0] && !strchr(about.scheduler, ']'));
	}
	CHECK(!pen__disk_of("/proc", name, sizeof(name)));
	CHECK(!pen__disk_of("/etc", name, 1));
	pen__disk_about("../../etc", &about);
	CHECK(!about.known);
	pen__disk_about("", &about);
	CHECK(!about.known);
	/* a missing file is on the device of its directory */
	pen__disk_of("/etc/no/such/thing", name, sizeof(name));
	pen__disk_of("relative/thing", name, sizeof(name));
}

/* Reads iostat.json like DLIO. */
static const char reader[] =
	"import json, sys, datetime\n"
	"h = json.load(open(sys.argv[1]))['sysstat']['hosts'][0]\n"
	"assert h['number-of-cpus'] >= 1 and h['nodename'] and h['date']\n"
	"s = h['statistics']\n"
	"assert len(s) >= int(sys.argv[2]), len(s)\n"
	"for x in s:\n"
	"  datetime.datetime.strptime(x['timestamp'], '%m/%d/%y %H:%M:%S')\n"
	"  c = x['avg-cpu']\n"
	"  assert sum(c.values()) == 0 or abs(sum(c.values()) - 100) < .01\n"
	"  assert c['user'] + c['nice'] >= 0\n"
	"  for d in x['disk']:\n"
	"    v = [d[k] for k in ('r/s', 'w/s', 'rMB/s', 'wMB/s', 'r_await',\n"
	"                        'w_await', 'aqu-sz', 'rareq-sz', 'util')]\n"
	"    assert d['disk_device'] and all(y >= 0 for y in v)\n";

static const char result_reader[] =
	"import json, sys\n"
	"w = json.load(open(sys.argv[1]))\n"
	"n = len(w['samples'])\n"
	"assert int(sys.argv[2]) <= n < 20 or 500 <= n <= 1000, n\n"
	"for i, d in enumerate(w['disks']):\n"
	"  for k in 'reads', 'read_bytes', 'writes':\n"
	"    assert d[k] == sum(s['disks'][i][k] for s in w['samples'])\n"
	"for k in w['pressure']:\n"
	"  t = sum(s['pressure'][k] for s in w['samples'])\n"
	"  assert k == 'known' or t == w['pressure'][k]\n"
	"assert abs(sum(s['seconds'] for s in w['samples']) - w['seconds'])"
	" < 1e-6\n";

static void read_back(const char *script, const char *path, unsigned n)
{
	char cmd[4096];

	snprintf(cmd, sizeof(cmd), PYTHON " -c \"%s\" %s %u", script, path, n);
	CHECK_EQ(system(cmd), 0);
	CHECK_EQ(unlink(path), 0);
}

static void watching(const char *disks, unsigned times)
{
	struct pen_watch *w;
	struct pen_text t = { 0 };
	struct pen_err err = { 0 };
	char iostat[64], result[64];

	snprintf(iostat, sizeof(iostat), "iostat-%d.json", (int)getpid());
	snprintf(result, sizeof(result), "watch-%d.json", (int)getpid());
	if (!CHECK_EQ(pen__watch_start(&w, disks, &err), 0))
		return;
	for (unsigned i = 0; i < times; i++)
		pen__watch_now(w);
	CHECK(pen__watch_iostat(w, "no/such/dir/x", &err) != 0);
	if (times < 100) { /* or a long file */
		CHECK_EQ(pen__watch_iostat(w, iostat, &err), 0);
		read_back(reader, iostat, times + 2);
	}
	pen__watch_stop(w, &t);
	CHECK_EQ(pen__text_save(&t, result, &err), 0);
	read_back(result_reader, result, times + 3);
	pen__text_fini(&t);
}

static void watching_fails(void)
{
	struct pen_watch *w;
	struct pen_text t = { 0 };
	uint64_t nth = 0, calls;
	int rc;

	pen__watch_stop(NULL, NULL);
	do { /* only samples may be missing */
		pen__mem_fail_nth(++nth, false);
		rc = pen__watch_start(&w, NULL, NULL);
		if (!rc) {
			pen__watch_now(w);
			pen__watch_stop(w, &t);
		}
		calls = pen__mem_count();
		pen__mem_fail_nth(0, false);
		pen__text_fini(&t);
	} while (calls >= nth && nth < 1000);
	CHECK_EQ(rc, 0);
	pen__mem_fail_nth(1, true);
	CHECK(pen__watch_start(&w, NULL, NULL) != 0);
	pen__mem_fail_nth(0, false);
	CHECK(!w);
}

/* The usage of other processes is between zero and the capacity of the machine.
 */
static void others(void)
{
	struct pen_others o;
	struct pen_text t = { .compact = true };
	struct pen_jdoc d;
	volatile uint64_t sum = 0;
	double seconds = 0, cpu = -1, cpus = 0;
	uint32_t at;

	pen__others_start(&o);
	for (uint64_t i = 0; i < 1000000; i++)
		sum += i;
	pen__json_open(&t, NULL, '{');
	pen__others_json(&t, "others", &o);
	pen__json_close(&t, '}');
	if (!CHECK(t.p && !t.failed) ||
	    !CHECK_EQ(pen__jdoc_open(&d, t.p, t.n, "others", NULL), 0))
		return;
	at = pen__jdoc_get(&d, 0, "others");
	CHECK(pen__jdoc_number(&d, pen__jdoc_get(&d, at, "seconds"), &seconds));
	CHECK(pen__jdoc_number(&d, pen__jdoc_get(&d, at, "cpu_s"), &cpu));
	CHECK(pen__jdoc_number(&d, pen__jdoc_get(&d, at, "cpus"), &cpus));
	CHECK(seconds > 0 && cpus >= 1 && cpu >= 0);
	/* the kernel counts in ticks of 10 ms per CPU */
	CHECK(cpu <= (seconds + 0.1) * cpus);
	pen__jdoc_close(&d);
	pen__text_fini(&t);
}

/* The facts of a verdict: counters that only grow, or are unknown; two
 * processes on a host get half each. */
static void facts(void)
{
	struct pen_facts a, b, half;
	struct pen_thread_times t;
	char buf[64];

	CHECK(!pen__thread_times(0, &t) && !t.cpu_ns && !t.queue_ns);
	CHECK(!pen__cgroup_read("", "no-such-file", buf, sizeof(buf)));
	CHECK(!pen__cgroup_read("no-such-controller", "x", buf, sizeof(buf)));
	pen__facts_init(&a);
	b = half = a;
	pen__machine_facts(&a, "", 1);
	pen__machine_facts(&b, "no such disk", 1);
	pen__machine_facts(&half, "", 2);
	CHECK_STR(b.device, "no such disk");
	CHECK(isnan(b.v[PEN_DISK_READS]) && isnan(b.v[PEN_READ_S]));
	for (int i = 0; i < PEN_NFACTS; i++) {
		CHECK(isnan(a.v[i]) == isnan(b.v[i]));
		/* the kernel may correct idle time */
		CHECK(i == PEN_CPU_ALL_S || !(b.v[i] < a.v[i]));
	}
	CHECK(a.v[PEN_SECONDS] > 0 && a.v[PEN_CPU_S] > 0);
	CHECK(a.v[PEN_CPU_ROOM_S] >= a.v[PEN_SECONDS]);
	CHECK(a.v[PEN_CPU_ALL_S] > 0 && a.v[PEN_STEAL_S] >= 0);
	CHECK(half.v[PEN_HOST_S] < a.v[PEN_HOST_S]);
	pen__facts_since(&b, &a);
	CHECK(b.v[PEN_SECONDS] >= 0 && b.v[PEN_SECONDS] < a.v[PEN_SECONDS]);
}

int main(void)
{
	facts();
	disk_lines();
	pairs();
	this_machine();
	watching(NULL, 3);
	watching("['vda', no-such-disk]", 3);
	watching("vda", 17000); /* more than the maximum */
	watching_fails();
	others();
	return test_end();
}
