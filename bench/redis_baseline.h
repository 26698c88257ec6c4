// EvoStore's baseline, as its artifact has it (nas/transfer_learning/transfer_methods/_redis.py), on hiredis: a set of
// model ids, a list of layer names for each, a readers-writer lock of three keys. A query reads every list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct redisContext;
struct redisReply;

namespace weft::bench {

class RedisBaseline {
 public:
  explicit RedisBaseline(const std::string& socket);  // throws when nobody answers
  ~RedisBaseline();
  RedisBaseline(const RedisBaseline&) = delete;
  RedisBaseline& operator=(const RedisBaseline&) = delete;

  // Adds a model, without the lock and pipelined; flush() waits for all of them.
  void store(const std::string& id, const std::vector<std::string>& names);
  void flush();

  // The largest number of names that a model has in common with these; that model's counts go up.
  std::uint64_t best_match(const std::vector<std::string>& names, bool locked);

 private:
  struct Reply;
  Reply command(const std::vector<std::string>& words);
  Reply next();
  void append(const std::vector<std::string>& words);
  void take(const std::string& lock);
  void give(const std::string& lock);
  void begin_reading();
  void end_reading();

  redisContext* context_;
  std::string token_;
  std::uint64_t waiting_ = 0;  // replies
};

}  // namespace weft::bench
