/* Inside layer 11: averages of the weights, which are validated and saved in their place.
 *
 * training.ema: after the n-th update, average += (1 - d) (weights - average) with d = min(ema, (n - 1) / (n + 8)), so
 * that the average begins with the first weights and forgets them quickly (the warm-up of TensorFlow's
 * ExponentialMovingAverage). training.average: the mean of the last so many weights, taken every training.average_every
 * steps and after the last one (Vaswani et al. 2017, section 6.1, average their last checkpoints). */
#ifndef HW_TRAIN_AVERAGE_H
#define HW_TRAIN_AVERAGE_H

#include <headwise/config.h>
#include <headwise/model.h>

typedef struct hw_average {
    const hw_transformer *model; /* the network in training */
    hw_transformer *network;     /* its values are the average */
    double ema;                  /* 0: samples are averaged */
    int64_t every, last_step;    /* when they are taken */
    int64_t most, count;         /* how many are kept, and how many there are */
    hw_real **samples;           /* [count] weights, the oldest first, laid out as hw_parameters_values */
} hw_average;

/* NULL where the configuration asks for no average. */
hw_average *hw_average_new(const hw_transformer *model, const hw_config *config);
void hw_average_free(hw_average *a); /* NULL is fine */
/* After each step; `changed`: it changed the weights, which made `updates` times that they were. */
void hw_average_step(hw_average *a, int64_t step, int64_t updates, bool changed);
/* Brings the network's values and packed layouts up to date. */
void hw_average_settle(hw_average *a, int64_t updates);
/* Room for one more sample, for whoever reads a checkpoint. */
hw_real *hw_average_room(hw_average *a);

/* Zeroed numbers, to be freed. */
hw_real *hw_numbers_new(int64_t count);

#endif
