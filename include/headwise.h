/* Headwise, from the ground up: this list is the architecture. A layer includes only those above it here. */
#ifndef HEADWISE_H
#define HEADWISE_H

#include <headwise/base.h>
#include <headwise/config.h>
#include <headwise/tensor.h>
#include <headwise/autograd.h>
#include <headwise/nn.h>
#include <headwise/model.h>
#include <headwise/text.h>
#include <headwise/bundle.h>
#include <headwise/decode.h>
#include <headwise/metrics.h>
#include <headwise/heads.h>
#include <headwise/train.h>

#endif
