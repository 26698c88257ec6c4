// An empty index in a temporary directory, without the store that uses it.
#pragma once

#include <functional>
#include <memory>

#include "index/env.h"
#include "store_paths.h"
#include "testing.h"

namespace weft::testing {

struct TestIndex {
  TestIndex() {
    must(Env::create(path));
    EnvOptions options;
    options.write = true;
    options.reader_wait_ms = 0;  // a commit fails if it has to wait for a reader
    env = must(Env::open(path, options));
  }
  void change(const std::function<Status(Txn&)>& body) const {
    const WriterLock lock = must(env->lock_writer());
    must(env->write(lock, body));
  }

  TempDir dir;
  SafePath path = safe(dir.path());
  std::unique_ptr<Env> env;
};

}  // namespace weft::testing
