//! Neighbors kept against bytes, as SVG: a full circle for frequent rows, a ring for rare ones, a line between.

use std::error::Error;

use plotters::prelude::*;

use super::Evaluated;
use crate::failure::{Exit, Failure, Outcome};

const SIZE: (u32, u32) = (960, 600);
/// Of the picture; the rest is the legend's.
const CHART: u32 = 680;
/// A line of the legend.
const LINE: i32 = 18;

/// The picture.
pub(super) fn svg(title: &str, evaluated: &[Evaluated]) -> Outcome<String> {
    let mut drawn = String::new();
    draw(&mut drawn, title, evaluated).map_err(|error| {
        Failure::new(Exit::Other, format!("the plot cannot be drawn: {error}"), "leave --plot out, or report this")
    })?;
    Ok(drawn)
}

fn draw(out: &mut String, title: &str, evaluated: &[Evaluated]) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::with_string(out, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(CHART);
    let points = evaluated.iter().enumerate().filter_map(|(number, one)| {
        let [frequent, _, rare] = one.kept;
        let color = Palette99::pick(number).to_rgba();
        Some((one, color, 100.0 * one.report.share(), 100.0 * frequent?, 100.0 * rare?))
    });
    let points: Vec<_> = points.collect();
    let widest = points.iter().fold(100f64, |widest, point| widest.max(point.2));
    let lowest = points.iter().fold(100f64, |lowest, point| lowest.min(point.3).min(point.4));
    let mut chart = ChartBuilder::on(&left)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(54)
        // Points at the edge are whole.
        .build_cartesian_2d(0.0..widest * 1.03, (lowest / 10.0).floor() * 10.0..101.5)?;
    chart
        .configure_mesh()
        .x_desc("bytes, % of f32")
        .y_desc("nearest 10 kept, %")
        .label_style(("sans-serif", 14))
        .x_label_formatter(&|value| format!("{value:.0}"))
        .y_label_formatter(&|value| format!("{value:.0}"))
        .light_line_style(WHITE.mix(0.0))
        .draw()?;
    for (_, color, bytes, frequent, rare) in &points {
        chart.draw_series([PathElement::new([(*bytes, *frequent), (*bytes, *rare)], color.stroke_width(1))])?;
        chart.draw_series([Circle::new((*bytes, *rare), 5, color.stroke_width(2))])?;
        chart.draw_series([Circle::new((*bytes, *frequent), 5, color.filled())])?;
    }
    let font = ("sans-serif", 13).into_font();
    let mut y = 48;
    for text in ["full: frequent rows", "ring: rare rows", ""] {
        right.draw(&Text::new(text, (4, y - 6), font.clone()))?;
        y += LINE;
    }
    // Lines come closer where there are many.
    let room = i32::try_from(SIZE.1).unwrap_or(0) - 110;
    let line = (room / i32::try_from(points.len().max(1)).unwrap_or(i32::MAX)).min(LINE);
    // From the largest to the smallest, as they stand from right to left.
    let mut order: Vec<_> = points.iter().collect();
    order.sort_by(|one, other| other.2.total_cmp(&one.2));
    for (one, color, bytes, ..) in order {
        right.draw(&Circle::new((9, y), 5, color.filled()))?;
        let text = format!("{}  {bytes:.1} %", one.scheme);
        right.draw(&Text::new(text, (20, y - 6), font.clone()))?;
        y += line;
    }
    root.present()?;
    Ok(())
}
