/*
 * Numbers formatted for people: three digits, decimal units (1 MB is 10^6
 * bytes). Every command and page uses these, so that a figure looks the same
 * everywhere. NaN is shown as "-".
 */
#ifndef PEN_BASE_SHOW_H
#define PEN_BASE_SHOW_H

#include <stdint.h>

/* Use .s within the statement that made it, or keep the struct. */
struct pen_shown {
	char s[48];
};
struct pen_shown pen__show_count(double);     /* "81.2 k" */
struct pen_shown pen__show_bytes(double);     /* "1.35 GB" */
struct pen_shown pen__show_time(double s);    /* "4.6 us", "2 min 05 s" */
struct pen_shown pen__show_share(double);     /* 0.38: "38 %" */
struct pen_shown pen__show_percent(double);   /* 38.2: "38.2 %" */
struct pen_shown pen__show_whole(double);     /* "65,536" */
struct pen_shown pen__show_grouped(uint64_t); /* the same, for any size */
struct pen_shown pen__show_number(double);    /* "340", "4.2" */
/* to / from - 1: "+12.3 %", and from twice on "x 15,588" */
struct pen_shown pen__show_change(double);
/* "1 file", "1,000 files", "2 batches"; what: the singular */
struct pen_shown pen__show_counted(uint64_t n, const char *what);

#endif
