use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures_timer::Delay;

use super::*;
use crate::error::{DeviceError, ShardCause};

/// A shard that counts how many there are.
#[derive(Clone)]
struct Shard {
    number: usize,
    _alive: Arc<Alive>,
}

struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct World {
    alive: Arc<AtomicUsize>,
    most: AtomicUsize,
    loads: AtomicUsize,
}

impl World {
    /// A load that takes a moment, and fails for every seventh.
    fn load(self: &Arc<Self>, cache: &Arc<Cache<Shard>>, number: usize, fails: bool) -> Load<Shard> {
        let (world, cache) = (self.clone(), cache.clone());
        Box::pin(async move {
            let _running = cache.running().await;
            let load = world.loads.fetch_add(1, Ordering::SeqCst);
            Delay::new(Duration::from_micros(200)).await;
            if fails && load % 7 == 3 {
                let cause = ShardCause::Device(DeviceError::Refused("no".to_owned()));
                return Err(ShardError {
                    table: "t".to_owned(),
                    shard: Some(number),
                    rows: 0..1,
                    cause: Arc::new(cause),
                });
            }
            let alive = world.alive.fetch_add(1, Ordering::SeqCst) + 1;
            world.most.fetch_max(alive, Ordering::SeqCst);
            Ok(Shard { number, _alive: Arc::new(Alive(world.alive.clone())) })
        })
    }
}

/// The error where leases leave no room.
fn busy(leased: Bytes, budget: Bytes) -> ShardError {
    let cause = Arc::new(ShardCause::Leased { leased, budget });
    ShardError { table: "t".to_owned(), shard: None, rows: 0..1, cause }
}

fn cache(shards: usize, budget: u64) -> Arc<Cache<Shard>> {
    Arc::new(Cache::new((0..shards).map(|_| 10), budget, 2))
}

fn there(cache: &Cache<Shard>, shards: usize) -> Vec<usize> {
    cache.resident(0..shards).into_iter().enumerate().filter_map(|(shard, there)| there.then_some(shard)).collect()
}

#[test]
fn the_oldest_goes_first_and_never_one_in_use() {
    let (cache, world) = (cache(6, 30), Arc::new(World::default()));
    let acquire = |shards: &[usize], purpose| {
        let load = |number| world.load(&cache, number, false);
        pollster::block_on(cache.acquire(shards.to_vec(), purpose, load, busy)).unwrap()
    };
    drop(acquire(&[0, 1, 2], Use::Lookup));
    drop(acquire(&[0], Use::Lookup));
    let held = acquire(&[1], Use::Lookup);
    drop(acquire(&[3], Use::Lookup));
    assert_eq!(there(&cache, 6), [0, 1, 3], "2 was the oldest");
    assert_eq!(cache.evict(0..6), 20);
    assert_eq!(there(&cache, 6), [1], "it is in use");
    drop(acquire(&[0, 2], Use::Lookup));
    drop(held);
    // What a scan loads is the first to go, also before what was there longest.
    drop(acquire(&[3], Use::Scan));
    drop(acquire(&[4], Use::Scan));
    assert_eq!(there(&cache, 6), [1, 2, 4]);
    drop(acquire(&[4], Use::Lookup));
    drop(acquire(&[5], Use::Lookup));
    assert_eq!(there(&cache, 6), [1, 4, 5], "a lookup has used 4 since, and 1 after 2");
    assert_eq!(cache.evict_oldest(), 10);
    assert!(cache.all().is_none());
    let counts = cache.residency();
    assert_eq!((counts.resident_shards, counts.resident_bytes, counts.bytes), (2, Bytes(20), Bytes(60)));
    assert_eq!(counts.misses, counts.evictions + 2);
}

#[test]
fn a_call_that_does_not_fit_waits_for_those_before_it() {
    let (cache, world) = (cache(4, 20), Arc::new(World::default()));
    let load = |number| world.load(&cache, number, false);
    let held = pollster::block_on(cache.acquire(vec![0, 1], Use::Lookup, load, busy)).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let held = pollster::block_on(cache.acquire(vec![2, 3], Use::Lookup, load, busy)).unwrap();
            held.values().iter().map(|shard| shard.number).collect::<Vec<_>>()
        });
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(there(&cache, 4), [0, 1]);
        drop(held);
        assert_eq!(waiting.join().unwrap(), [2, 3]);
    });
}

/// Calls of all kinds from several threads, some of which are dropped before they end, with loads that fail: the budget holds
/// at each moment, each call gets what it asked for, and nothing is left in the end.
#[test]
fn any_calls_of_several_threads() {
    const SHARDS: usize = 12;
    let (cache, world) = (cache(SHARDS, 50), Arc::new(World::default()));
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (cache, world) = (&cache, &world);
            scope.spawn(move || {
                let mut seed = thread + 1;
                let mut random = |below: usize| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    usize::try_from(seed >> 33).unwrap() % below
                };
                for _ in 0..400 {
                    let first = random(SHARDS);
                    let shards: Vec<usize> = (0..1 + random(5)).map(|at| (first + at) % SHARDS).collect();
                    let purpose = if random(3) == 0 { Use::Scan } else { Use::Lookup };
                    let acquired =
                        cache.acquire(shards.clone(), purpose, |number| world.load(cache, number, true), busy);
                    match random(4) {
                        0 => {
                            let limited = futures_util::future::select(
                                Box::pin(acquired),
                                Delay::new(Duration::from_micros(random(600) as u64)),
                            );
                            drop(pollster::block_on(limited));
                        }
                        1 => drop(cache.evict(shards.into_iter())),
                        _ => {
                            if let Ok(held) = pollster::block_on(acquired) {
                                assert!(held.values().iter().map(|shard| shard.number).eq(shards));
                            }
                        }
                    }
                    assert!(cache.residency().resident_bytes <= Bytes(50));
                }
            });
        }
    });
    assert!(world.most.load(Ordering::SeqCst) <= 5, "{} shards at a time", world.most.load(Ordering::SeqCst));
    let counts = cache.residency();
    assert!(counts.failures > 0 && counts.joined > 0 && counts.hits > 0 && counts.evictions > 0, "{counts:?}");
    let state = cache.lock();
    assert!(state.slots.iter().all(|slot| slot.users == 0 && !matches!(slot.place, Place::Loading(..))));
    assert_eq!((state.running, state.bytes, state.idle_bytes), (0, counts.resident_bytes.0, counts.resident_bytes.0));
    assert_eq!(state.idle.len(), counts.resident_shards);
    drop(state);
    assert_eq!(cache.evict(0..SHARDS), counts.resident_bytes.0);
    assert_eq!(world.alive.load(Ordering::SeqCst), 0);
}

/// Nobody waits for a lease: what finds no room beside it fails, and what does goes on.
#[test]
fn leases_are_not_waited_for() {
    let (cache, world) = (cache(6, 30), Arc::new(World::default()));
    let acquire = |shards: &[usize], purpose| {
        let load = |number| world.load(&cache, number, false);
        pollster::block_on(cache.acquire(shards.to_vec(), purpose, load, busy))
    };
    let lease = acquire(&[0, 1], Use::Lease).unwrap();
    let again = acquire(&[1], Use::Lease).unwrap();
    assert_eq!(cache.room(), 10);
    drop(acquire(&[2], Use::Lookup).unwrap());
    drop(acquire(&[0, 1, 3], Use::Lookup).unwrap());
    for purpose in [Use::Lookup, Use::Scan, Use::Lease] {
        let Err(error) = acquire(&[2, 3], purpose) else { panic!("{purpose:?} finds room") };
        assert!(matches!(*error.cause, ShardCause::Leased { leased: Bytes(20), budget: Bytes(30) }), "{error}");
    }
    drop(lease);
    assert_eq!(cache.room(), 20);
    drop(acquire(&[2, 3], Use::Lookup).unwrap());
    drop(again);
    assert_eq!(cache.room(), 30);
    drop(acquire(&[2, 3, 4], Use::Lease).unwrap());
}
