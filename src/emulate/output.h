/* Files and lines a run leaves behind. */
#ifndef PEN_EMULATE_OUTPUT_H
#define PEN_EMULATE_OUTPUT_H

#include "emulate/metrics.h"
#include "emulate/system.h"

/*
 * Where lines go: to the log file (rank 0) with DLIO's prefix and time, and,
 * the same line without its end, to say(), which the command points at the
 * terminal (NULL: nowhere). Lines of DLIO's own kind have its wording, because
 * scripts look for it.
 */
enum pen_log_level { PEN_LOG_OUTPUT, PEN_LOG_WARNING, PEN_LOG_ERROR };
struct pen_log {
	void (*say)(void *arg, enum pen_log_level, const char *line);
	void *arg;
	int fd;	    /* of the log file, or -1 */
	bool quiet; /* not rank 0 */
};
/* Sets fd only; path NULL: no file. */
int pen__log_open(struct pen_log *, const char *path, struct pen_err *err);
void pen__log_close(struct pen_log *);
/* One line with the time in front, as
 * "[OUTPUT] 2026-11-15T20:49:06.949188 Starting". */
void pen__log(struct pen_log *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void pen__log_warn(struct pen_log *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The [METRIC] block at the end. */
void pen__log_metrics(struct pen_log *, const struct pen_record *,
		      const struct pen_figures *);

/* "2026-11-15T20:49:06.949188", local time, into buf */
const char *pen__iso_time(double unix_s, char buf[32]);

/* {rank}_output.json and {rank}_per_epoch_stats.json for every accelerator of
 * this process, summary.json on rank 0. Collective (hosts are gathered). */
int pen__output_dlio(const struct pen_record *, const struct pen_figures *,
		     const char *dir, struct pen_err *err);

/* Everything, versioned: schema "penstock.result/1", see docs/result.md.
 * Collective; rank 0 writes. watch (from pen__watch_stop()) may be NULL. */
int pen__output_result(const struct pen_record *, const struct pen_figures *,
		       const struct pen_settings *,
		       const struct pen_text *watch, const char *path,
		       struct pen_err *err);

/* Chrome trace (Perfetto) of this process: trace-RANK.json */
int pen__output_trace(const struct pen_record *, const char *path,
		      struct pen_err *err);

/* --- shared by the files of this module --- */

/* What a rank tells of its host; every rank's, in rank order. */
struct pen_rank_host {
	struct pen_host host;
	struct pen_disk_about disk;
	char disk_name[32];
	int rank, node, local_rank;
	unsigned naccel;
};
/* Collective; *all is NULL but on rank 0, where it has comm->size. */
int pen__hosts_gather(const struct pen_record *, struct pen_rank_host **all,
		      struct pen_err *err);

/* The steps of a phase laid out in time. The record has durations only; what
 * the block took beyond its steps (barriers, mostly) is spread evenly behind
 * them, and a step begins where the one before ends. Durations are scaled
 * down where clocks make them longer than the block. */
struct pen_lay {
	double scale, slack; /* of every step */
};
struct pen_lay pen__lay_of(const struct pen_phase *, unsigned accel);

#endif
