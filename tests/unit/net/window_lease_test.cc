#include "net/calls/window_lease.h"

#include <doctest/doctest.h>

namespace weft::net {
namespace {

using std::chrono::seconds;

const Deadline kCalled = Deadline(std::chrono::hours(1));

}  // namespace

TEST_CASE("windows are open for a lease from the call on, and for another from each question that was answered") {
  WindowLease lease(kCalled);
  CHECK(lease.until() == kCalled + kWindowLease);
  CHECK_FALSE(lease.is_question_due(kCalled + kSignEvery / 2));
  CHECK(lease.is_question_due(kCalled + kSignEvery));
  const auto number = lease.ask(kCalled + seconds(3));
  CHECK_FALSE(lease.is_question_due(kCalled + seconds(3)));
  CHECK(lease.until() == kCalled + kWindowLease);  // the question may get lost
  lease.renewed(number);
  CHECK(lease.until() == kCalled + seconds(3) + kWindowLease);
}

TEST_CASE("the answer to an earlier question renews nothing") {
  WindowLease lease(kCalled);
  const auto first = lease.ask(kCalled + seconds(1));
  const auto second = lease.ask(kCalled + seconds(5));
  lease.renewed(first);
  CHECK(lease.until() == kCalled + kWindowLease);
  lease.renewed(second);
  CHECK(lease.until() == kCalled + seconds(5) + kWindowLease);
}

TEST_CASE("windows that the peer has closed are open no longer") {
  WindowLease lease(kCalled);
  lease.ended();
  CHECK(lease.until() < kCalled);
}

}  // namespace weft::net
