/*
 * support_seam.h - included before any other line of a source file, puts its threads under support_schedule.h.
 */
#ifndef SUPPORT_SEAM_H
#define SUPPORT_SEAM_H

#include <stdatomic.h>

#include "support_schedule.h"

#define pthread_mutex_init schedule_mutex_init
#define pthread_mutex_destroy schedule_mutex_destroy
#define pthread_mutex_lock schedule_mutex_lock
#define pthread_mutex_trylock schedule_mutex_trylock
#define pthread_mutex_unlock schedule_mutex_unlock
#define pthread_cond_init schedule_cond_init
#define pthread_cond_destroy schedule_cond_destroy
#define pthread_cond_wait schedule_cond_wait
#define pthread_cond_signal schedule_cond_signal
#define pthread_cond_broadcast schedule_cond_broadcast
#define pthread_create schedule_create
#define pthread_join schedule_join

#undef atomic_load
#undef atomic_store
#undef atomic_exchange
#undef atomic_fetch_sub
#undef atomic_compare_exchange_weak
#define atomic_load(at) (schedule_point(), atomic_load_explicit((at), memory_order_seq_cst))
#define atomic_store(at, value) (schedule_point(), atomic_store_explicit((at), (value), memory_order_seq_cst))
#define atomic_exchange(at, value) (schedule_point(), atomic_exchange_explicit((at), (value), memory_order_seq_cst))
#define atomic_fetch_sub(at, value) (schedule_point(), atomic_fetch_sub_explicit((at), (value), memory_order_seq_cst))
#define atomic_compare_exchange_weak(at, expected, value)                                                              \
    (schedule_point(),                                                                                                 \
     atomic_compare_exchange_weak_explicit((at), (expected), (value), memory_order_seq_cst, memory_order_seq_cst))

#endif
